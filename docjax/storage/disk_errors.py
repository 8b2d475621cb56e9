"""A full, read-only or unreadable disk, told in one line."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docjax.errors import UserError

MENDS = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room in the quota",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f)",
    errno.EROFS: "make it writable, or name another place",
    errno.EACCES: "give this user the right to it, or name another place",
    errno.EIO: "repair the disk, or name another place",
}
READING = (errno.EACCES, errno.EIO)  # of reading as well as of writing
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
        found = cause(error)
        if found is None:
            raise
        raise UserError(
            f"{found.path or folder}: {found.line}, and run the same command again: it "
            "goes on from what is saved"
        ) from None


class Cause(NamedTuple):
    """The disk's error that another error comes from."""

    number: int
    path: str | bytes | int | None

    @property
    def line(self) -> str:
        """What is wrong, and what mends it."""
        failed = "read or written" if self.number in READING else "written"
        return f"cannot be {failed} ({os.strerror(self.number)}); {MENDS[self.number]}"


def cause(error: BaseException | None) -> Cause | None:
    """The disk's error that an error comes from; None without one."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in MENDS:
            return Cause(error.errno, error.filename)
        for text, number in TEXTS.items():
            if text in str(error):
                return Cause(number, getattr(error, "filename", None))
        error = error.__cause__ or error.__context__
    return None
