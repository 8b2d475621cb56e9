"""Documents from JSON lines: the source `files` under the name that older configs have."""

from collections import Counter
from collections.abc import Iterator

from docjax.data.sources import files as files_lib
from docjax.types import Document

stamp = files_lib.stamp


def jsonl(
    path: str,
    max_bad_fraction: float = 0.0,
    report: Counter | None = None,
    without: tuple[str, ...] = (),
) -> Iterator[Document]:
    """As `files` with its defaults."""
    given = dict(max_bad_fraction=max_bad_fraction, report=report, without=without)
    return files_lib.files(path, **given)
