"""A table that a reader has opened: its columns, and its rows as they are read."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from docjax.data.documents import BadDocument

# The place of a row, and the row by columns; or why it cannot be read.
Row = tuple[str, Mapping[str, Any] | BadDocument | Any]


ADD_HEADER = "; or, if the first row is no header, add one, such as id,text,label"


class Table(NamedTuple):
    """form: how the file is written, for the log; is_json: a row may lack columns, and
    null is a value; mend: what else may mend columns without usual names."""

    form: str
    columns: Sequence[str]
    rows: Iterator[Row]
    is_json: bool = False
    mend: str = ""
