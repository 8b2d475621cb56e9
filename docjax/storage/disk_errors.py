"""A full or read-only disk, told in one line."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from docjax.errors import UserError

MENDS = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room in the quota",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f)",
    errno.EROFS: "make it writable, or name another place",
    errno.EACCES: "give this user the right to it, or name another place",
    errno.EIO: "repair the disk, or name another place",
}
# tokenizers and TensorStore raise errors of their own, with these words of the system.
TEXTS = {
    os.strerror(number): number
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
}


@contextlib.contextmanager
def in_one_line(folder: Path) -> Iterator[None]:
    """Raises UserError in place of an error of the disk that holds `folder`.

    Raises:
      UserError: with the file, the reason, and what mends it.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        number, path = cause(error), getattr(error, "filename", None) or folder
        if number is None:
            raise
        raise UserError(
            f"{path}: cannot be written ({os.strerror(number)}); {MENDS[number]}, and "
            "run the same command again: it goes on from what is saved"
        ) from None


def cause(error: BaseException | None) -> int | None:
    """The number of the disk's error that an error comes from; None without one."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in MENDS:
            return error.errno
        for text, number in TEXTS.items():
            if text in str(error):
                return number
        error = error.__cause__ or error.__context__
    return None
