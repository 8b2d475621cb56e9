"""The files that a pattern matches, and the lines of one, plain or packed."""

import glob
from collections.abc import Callable, Iterator
from pathlib import Path

from docjax.data.streams import STDIN, opened, shown
from docjax.errors import UserError


def files(path: str) -> list[Path]:
    """The files that `path` (a name or glob) matches, in the order of their names.
    Raises UserError if there is none, or a folder among them."""
    matches = [Path(path)] if exists(path, Path.is_file) else []
    matches = matches or [Path(name) for name in sorted(glob.glob(str(path)))]
    if not matches:
        raise UserError(f"{shown(path)}: no such file")
    for file in matches:
        if file.is_symlink() and not file.exists():
            raise UserError(
                f"{shown(file)}: a link to {shown(file.readlink())}, which is not there"
            )
        if file.is_dir():
            raise UserError(
                f"{shown(file)}: a folder; name its files ('{shown(file)}/*.jsonl')"
            )
    return matches


def exists(path: str, kind: Callable[[Path], bool]) -> bool:
    """`kind(Path(path))`. Raises UserError for a name that no file can have."""
    try:
        return kind(Path(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{shown(path)}: no such file ({reason})") from None


def check_again(path: str) -> None:
    """Raises UserError for a stream, since documents are read more than once."""
    if path == STDIN or exists(path, Path.is_fifo):
        raise UserError(
            f"{path}: a stream can be read only once, this reads twice: name a file"
        )


def open_lines(file: Path) -> Iterator[bytes]:
    """The lines of a file. Raises UserError as `streams.opened`."""
    with opened(file) as found:
        yield from found.stream
