"""Documents from tables like MS MARCO's: a document a line, with tabs between."""

from collections import Counter
from collections.abc import Iterator

from docjax.data import documents
from docjax.data.sources.lines import numbered_lines
from docjax.types import Document

COLUMNS = {
    2: ("id", "text"),
    3: ("id", "title", "text"),
    4: ("id", "url", "title", "text"),
}


def tsv(
    path: str, max_bad_fraction: float = 0.0, report: Counter | None = None
) -> Iterator[Document]:
    """The documents in the lines of the files that `path` matches, as `jsonl`.

    A line has 2 to 4 columns, see COLUMNS. Raises UserError for a missing or damaged
    file, and what `documents.read` raises.
    """
    return documents.read(numbered_lines(path), _parsed, max_bad_fraction, report)


def _parsed(line: bytes, place: str) -> Document:
    fields = documents.decode(line, place).rstrip("\r\n").split("\t")
    if len(fields) not in COLUMNS:
        wanted = "; ".join(", ".join(columns) for columns in COLUMNS.values())
        detail = f"{len(fields)} columns, not those of a table: {wanted}"
        raise documents.BadDocument(place, "wrong columns", detail)
    return documents.parse(dict(zip(COLUMNS[len(fields)], fields, strict=True)), place)
