"""Reports a full, read-only or unreadable disk in one line."""

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
    errno.ENAMETOOLONG: "give a shorter name",
    errno.ELOOP: "mend its links, which lead in a circle",
    errno.EIO: "repair the disk, or name another place",
}
READING = (
    errno.EACCES,
    errno.EIO,
    errno.ENAMETOOLONG,
    errno.ELOOP,
)  # reading raises these too
# tokenizers and TensorStore raise their own errors with these texts of the system.
TEXTS = {
    os.strerror(number): number
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
}


@contextlib.contextmanager
def in_one_line(folder: Path) -> Iterator[None]:
    """Turns an error of the disk that holds `folder` into a UserError, which names the
    file, the reason, and what mends it."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        fault = cause(error)
        if fault is None:
            raise
        raise UserError(
            f"{fault.path or folder}: {fault.line}, and run the same command again, "
            "which continues from what is saved"
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
    """The disk's error that an error comes from; None if there is none."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in MENDS:
            return Cause(error.errno, error.filename)
        for text, number in TEXTS.items():
            if text in str(error):
                return Cause(number, getattr(error, "filename", None))
        error = error.__cause__ or error.__context__
    return None
