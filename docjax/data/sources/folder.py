"""Documents from a folder: the source `files` under the name that older configs have."""

from collections import Counter
from collections.abc import Iterator

from docjax.data.sources import files as files_lib
from docjax.types import Document

stamp = files_lib.stamp


def folder(
    path: str,
    max_bad_fraction: float = 0.0,
    encoding: str | None = None,
    report: Counter | None = None,
) -> Iterator[Document]:
    """As `files` with its defaults."""
    given = dict(max_bad_fraction=max_bad_fraction, report=report, encoding=encoding)
    return files_lib.files(path, **given)
