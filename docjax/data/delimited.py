"""Records from CSV and TSV: the delimiter, the header and the quotes are found."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from docjax.data import columns
from docjax.data.documents import BadDocument, decode
from docjax.data.streams import BLOCK, Opened
from docjax.data.table import ADD_HEADER, Row, Table
from docjax.errors import UserError

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# The columns of a table with tabs and without a header, as MS MARCO has them.
WITHOUT_HEADER = {
    2: ("id", "text"),
    3: ("id", "title", "text"),
    4: ("id", "url", "title", "text"),
}
SEPARATOR = re.compile(rb"sep=(.)\r?\n")  # a first line that Excel reads
NAME = re.compile(r"\s*[A-Za-z][A-Za-z_. -]{0,30}\s*")  # of a column
# A field in quotes with a doubled quote.
DOUBLED = re.compile(r'(?:^|\t)"(?:[^"]|"")*""(?:[^"]|"")*"(?:\t|\r?$)', re.MULTILINE)
csv.field_size_limit((1 << 31) - 1)  # a field may be a long document


class Form(NamedTuple):
    """How a file is written; `sure`: its first rows have texts that need quotes."""

    delimiter: str
    quoted: bool
    columns: Sequence[str]
    has_header: bool
    sure: bool

    def __str__(self) -> str:
        header = "with a header" if self.has_header else "without a header"
        quotes = "" if self.quoted else ", quotes are text"
        return f"{DELIMITERS[self.delimiter]} between columns, {header}{quotes}"


def table(file: Opened, asked: Iterable[str] = ()) -> Table:
    """The rows of an opened file; `asked` are columns that a user names, so that a first
    row with one of them is a header.

    Raises:
      UserError: for a header with two equal names.
    """
    if not file.head.strip():
        return Table("CSV", ("id", "text"), iter(()))
    skip = SEPARATOR.match(file.head)
    head = file.head[skip.end() if skip else 0 :]
    form = _form(head, skip and skip[1].decode("latin-1"), set(asked))
    if any("\ufffd" in name for name in form.columns):
        decode(head.partition(b"\n")[0], f"{file.name}, header")
    columns.check_unique(form.columns, file.name)
    # Bytes that are not UTF-8 become half characters, which `_checked` finds.
    texts = io.TextIOWrapper(file.stream, "utf-8", "surrogateescape", newline="")
    if skip:
        next(texts)
    rows = _rows(texts, file.name, form)
    return Table(str(form), form.columns, rows, mend=ADD_HEADER)


def _form(head: bytes, delimiter: str | None, asked: set[str]) -> Form:
    text = head.decode("utf-8", "replace")
    if len(head) >= BLOCK:  # the last line may be cut
        text = text[: text.rfind("\n") + 1] or text
    delimiter = delimiter if delimiter in DELIMITERS else _delimiter(text)
    split = _sample(text, delimiter, False)
    quoted = _sample(text, delimiter, True)
    # A table with tabs may have quotes that are text, as MS MARCO's.
    is_quoted = delimiter != "\t" or _is_quoted(quoted, split)
    first = (quoted if is_quoted else split)[0]
    rows = quoted if is_quoted else split
    joined = any("\t" in field or "\n" in field for row in quoted for field in row)
    sure = delimiter != "\t" or joined or bool(DOUBLED.search(text))
    has_ids = not any(" " in row[0].strip() for row in rows if row)
    may_lack_header = delimiter == "\t" and len(first) in WITHOUT_HEADER and has_ids
    if may_lack_header and not _is_header(first, asked):
        if is_quoted and not _has_quotes(text):
            is_quoted = False
        return Form(delimiter, is_quoted, WITHOUT_HEADER[len(first)], False, sure)
    names = [name.strip() or f"column {n}" for n, name in enumerate(first, start=1)]
    return Form(delimiter, is_quoted, names, True, sure)


def _is_header(first: list[str], asked: set[str]) -> bool:
    """Whether a row is a header: a name that the user gives, two usual names, or that of
    a text beside words without digits."""
    known = columns.known(first)
    words = all(NAME.fullmatch(name) for name in first)
    return bool(asked & {*first}) or len(known) > 1 or ("text" in known and words)


def _delimiter(text: str) -> str:
    """The delimiter that splits the first row and most rows into equally many parts."""
    if "\t" in text.partition("\n")[0]:
        return "\t"

    def fitness(delimiter: str) -> tuple[float, int]:
        rows = _sample(text, delimiter, True)
        width = len(rows[0])
        if width < 2:
            return 0.0, 0
        names = len(columns.known(rows[0]))
        return names + sum(len(row) == width for row in rows) / len(rows), width

    return max(DELIMITERS, key=fitness)


def _sample(text: str, delimiter: str, quoted: bool) -> list[list[str]]:
    """The rows of the text; [[]] for none; up to the first that is not written so."""
    rows: list[list[str]] = []
    try:
        for row in _reader(io.StringIO(text, newline=""), delimiter, quoted):
            if row:
                rows.append(row)
    except csv.Error as error:
        if "unexpected end" not in str(error):
            rows.append([])  # is no row of a quoted table
    return rows or [[]]


def _is_quoted(quoted: list[list[str]], split: list[list[str]]) -> bool:
    """Whether quotes belong to the table. If each line is a full row, no text in quotes
    holds a line break, so quotes that join rows are text."""
    even = lambda rows: len({len(row) for row in rows}) == 1
    if even(split) and len(split) > len(quoted):
        return False
    return even(quoted) or not even(split)


def _has_quotes(text: str) -> bool:
    """Whether quotes of a table without a header were written by a program: a quote in
    a field is doubled, or each field of the first row has quotes."""
    first = text.partition("\n")[0].rstrip("\r").split("\t")
    whole = all(len(f) > 1 and f[0] == f[-1] == '"' for f in first)
    return whole or bool(DOUBLED.search(text))


def _reader(lines: Iterable[str], delimiter: str, quoted: bool) -> Iterator[list[str]]:
    if quoted:
        spaced = delimiter != "\t"
        keywords = dict(delimiter=delimiter, strict=True, skipinitialspace=spaced)
        return csv.reader(lines, **keywords)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)


def _rows(texts: Iterable[str], name: str, form: Form) -> Iterator[Row]:
    """The rows below the header."""
    rows = _numbered(texts, name, form)
    if form.has_header:
        next(rows, None)
    for number, (line, row) in enumerate(rows, start=1):
        place = f"{name}, row {number} (line {line})"
        yield place, _checked(row, place, form)


def _numbered(
    texts: Iterable[str], name: str, form: Form
) -> Iterator[tuple[int, list[str] | BadDocument]]:
    """Each row that is not blank, with the number of its first line."""
    reader = _reader(texts, form.delimiter, form.quoted)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            yield line, _bad_quotes(error, f"{name}, line {line}")
            continue
        if row is None:
            return
        if any(field.strip() for field in row):
            yield line, row


def _bad_quotes(error: csv.Error, place: str) -> BadDocument:
    """Raises UserError if the rest of the file stands in quotes that nothing closes."""
    if "unexpected end" in str(error):
        raise UserError(
            f"{place}: a quote opens here that nothing closes: double the quotes inside "
            "of a text, or write the table again"
        )
    detail = "a text goes on behind its closing quote: double the quotes inside of it"
    return BadDocument(place, "bad quotes", detail)


def _checked(
    row: list[str] | BadDocument, place: str, form: Form
) -> dict | BadDocument:
    if isinstance(row, BadDocument):
        return BadDocument(place, row.reason, row.detail)
    if len(row) != len(form.columns):
        detail = (
            f"{len(row)} columns in place of {len(form.columns)} "
            f"({columns.listed(form.columns, 8)}): put a text that has the delimiter "
            "or a line break into quotes"
        )
        return BadDocument(place, "wrong columns", detail)
    for field in row:
        if not form.sure and "\t" in field and "\n" in field:
            detail = (
                "a quote at the beginning of a text closes in a later row: write the "
                "table with commas, or as JSON lines"
            )
            return BadDocument(place, "bad quotes", detail)
        if not field.isascii():
            try:
                decode(field.encode("utf-8", "surrogateescape"), place)
            except BadDocument as error:
                return error
    return dict(zip(form.columns, row, strict=True))
