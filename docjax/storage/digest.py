"""What changes when a file changes."""

import hashlib
from pathlib import Path


def stamp(file: Path, content: bool) -> tuple:
    """The size and the time of a file, or with `content` its `digest`."""
    if content:
        return (digest(file),)
    stat = file.stat() if file.exists() else file.lstat()  # a link to nothing
    return stat.st_size, stat.st_mtime_ns


def digest(file: Path) -> str | None:
    """The sha256 of a file's bytes; None if it cannot be read."""
    try:
        return sha256(file)
    except OSError:  # the reader of the file reports the error
        return None


def sha256(file: Path) -> str:
    """The sha256 of a file's bytes. Raises OSError if it cannot be read."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
