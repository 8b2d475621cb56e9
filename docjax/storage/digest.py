"""The sha256 of a file."""

import hashlib
from pathlib import Path


def digest(file: Path) -> str | None:
    """The sha256 of a file's bytes; None if it cannot be read."""
    try:
        return sha256(file)
    except OSError:  # the reader of the file reports the error
        return None


def sha256(file: Path) -> str:
    """The sha256 of a file's bytes.

    Raises:
      OSError: if the file cannot be read.
    """
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
