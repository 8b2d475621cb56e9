"""Documents from JSON lines: plain, .gz, .xz or .zst, one file or a pattern of many."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from docjax.data import documents
from docjax.data.sources.lines import files, numbered_lines
from docjax.errors import UserError
from docjax.storage.digest import digest
from docjax.types import Document


def jsonl(
    path: str, max_bad_fraction: float = 0.0, report: Counter | None = None
) -> Iterator[Document]:
    """The documents in the lines of the files that `path` (a name or glob) matches.

    "-" is standard input, which can be read only once.

    Raises:
      UserError: for a missing or damaged file, and what `documents.read` raises.
    """
    lines = numbered_lines(path)
    return documents.read(lines, documents.parse_line, max_bad_fraction, report)


def check_again(path: str) -> None:
    """Raises UserError for a stream, since documents are read more than once."""
    if path == "-" or Path(path).is_fifo():
        raise UserError(
            f"{path}: a stream can be read only once, this reads twice: name a file"
        )


def stamp(path: str, content: bool = False, **keywords) -> list[tuple]:
    """Name, size and time of each file, or its `digest`: change when a file changes."""
    if content:
        return [(file.name, digest(file)) for file in files(path)]
    stats = [(file, file.stat()) for file in files(path)]
    return [(file.name, stat.st_size, stat.st_mtime_ns) for file, stat in stats]
