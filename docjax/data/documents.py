"""Turns records into Documents: checks what a record holds, and counts bad records.

`sources/` gets records from files, folders and packages. `records.py` holds the part
that exported folders need too.
"""

import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import charset_normalizer

from docjax.data import once
from docjax.data import records as records_lib
from docjax.data.records import BadRecord
from docjax.data.seen import Seen
from docjax.errors import UserError
from docjax.types import Document, Section

KEYS = (
    *("id", "_id", "title", "text", "sections", "label", "split"),
    *("links", "edges", "query", "metadata"),
)

SPLITS = ("train", "test", "dev", "valid", "val", "validation")

MEND = (
    "; mend it, or raise max_bad_fraction (of the source, or of the task that reads it; "
    "--max-bad-fraction of a command) to leave it out"
)
LIST = "a list; put each document on a line of its own: jq -c '.[]' FILE"
OBJECT = re.compile(r"\s*\{\s*[\"}]")  # the start of an object in JSON

COMMON = (  # encodings of people's files, as charset-normalizer calls them
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr", "mac_roman", "cp437"),
)
SHORT = 200  # bytes that tell little; such a text is most often a western one


class BadDocument(UserError):
    """A record that is not a document; `reason` is one of a few, for counting; `raw`
    are the bytes that are not in the encoding of the file."""

    def __init__(self, place: str, reason: str, detail: str, raw: bytes = b""):
        super().__init__(f"{place}: {reason}: {detail}")
        self.place, self.reason, self.detail, self.raw = place, reason, detail, raw


class NoDocuments(UserError):
    """A source without a single document."""


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except BadRecord as error:
        raise BadDocument(*error.args) from None


@_refusing()
def parse(record: Any, place: str) -> Document:
    """The document that one JSON object describes; `place` names it in errors.

    If the first line of a text is the title, that line is left out. Unknown keys go to
    `metadata`. Raises BadDocument for the reasons "missing key", "wrong type",
    "invalid UTF-8" and "empty text".
    """
    content = records_lib.content(record, place)
    document = Document(
        id=_name(record, "id" if "id" in record else "_id", place, required=True),
        sections=tuple(Section(*section) for section in content.sections),
        title=content.title,
        label=_label(record, place),
        split=_split(record, place),
        links=_links(record, place),
        edges=content.edges,
        query=records_lib.text(record, "query", place) or None,
        metadata=_metadata(record, place),
    )
    check_text(document, place)
    return document


def parse_line(line: bytes, place: str) -> Document:
    """The document in one line of JSON."""
    text = decode(line, place)
    if text.lstrip().startswith("["):
        raise BadDocument(place, "wrong type", LIST)
    return parse(json_value(text, place), place)


def to_line(document: Document) -> str:
    """Id, title, sections and links as a line of JSON, which `parse_line` reads."""
    record = {"id": document.id, "title": document.title}
    record["sections"] = [vars(section) for section in document.sections]
    record["links"] = document.links
    return json.dumps(record, ensure_ascii=False) + "\n"


def from_text(text: str, place: str) -> Document:
    """The document that a user typed: JSON if it starts as an object, else plain text.

    `place` becomes the id of a document without an id.
    """
    if not OBJECT.match(text):
        return parse({"id": place, "text": text}, place)
    record = json_value(text, place)
    return parse({"id": record.get("_id", place), **record}, place)


def decode(raw: bytes, place: str, encoding: str = "utf-8") -> str:
    """The text of `raw`, without a byte order mark."""
    try:
        return raw.decode(encoding).removeprefix("\ufeff")
    except LookupError:
        raise UserError(f"encoding={encoding!r}: not an encoding of Python") from None
    except UnicodeDecodeError as error:
        reason = "invalid UTF-8" if error.encoding == "utf-8" else "invalid encoding"
        detail = f"byte {error.start} is not {error.encoding} ({error.reason})"
        raise BadDocument(place, reason, detail, raw) from None


def encodings(raw: bytes) -> list[str]:
    """Up to three common encodings in which the bytes are a text, the likeliest first."""
    found = charset_normalizer.from_bytes(raw[: 1 << 16], cp_isolation=COMMON)
    names = [match.encoding for match in found]
    western = "cp1252"
    with contextlib.suppress(UnicodeDecodeError):
        raw.decode(western)
        names.insert(0 if len(raw) < SHORT else 2, western)
    return list(dict.fromkeys(names))[:3]


@_refusing()
def check_text(document: Document, place: str) -> None:
    """Raises BadDocument if a document has no words or holds half a character."""
    names = document.id, document.label, document.split, document.query
    fields = filter(None, (*names, *document.links))
    records_lib.check_text(document, place, f"document {document.id!r}", *fields)


@contextlib.contextmanager
def parsing(place: str, what: str) -> Iterator[None]:
    """Raises BadDocument for whatever a library raises while it reads a file."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 of a library that documents none
        reason = f"{type(error).__name__}: {error}".encode("unicode_escape").decode()
        reason = " ".join(reason.split())[:200]
        detail = f"{what}, damaged or cut short ({reason})"
        raise BadDocument(place, "unreadable file", detail) from None


def check_fits_in_table(name: str) -> None:
    """Raises UserError for the id of a document that a table with tabs cannot hold."""
    if "\t" in name or name.splitlines() != [name]:
        raise UserError(
            f"document {name!r} has a tab or a line break in its id, which no table can "
            "hold: give it another id"
        )


def check_columns(names: Mapping[str, str], columns: Iterable[str], place: str) -> None:
    """Raises UserError if a table lacks a column that a keyword names."""
    columns = list(columns)
    for key, name in names.items():
        if name not in columns:
            mend = "" if key == "text" else f"; {key}=None leaves it out"
            raise UserError(
                f"{key}={name!r}: {place} has no such column; "
                f"it has {', '.join(columns)}{mend}"
            )


def read(
    records: Iterable[tuple[str, Any]],
    convert: Callable[[Any, str], Document],
    max_bad_fraction: float = 0.0,
    report: Counter | None = None,
) -> Iterator[Document]:
    """The documents of `(place, record)` pairs; bad ones raise or are counted.

    With `max_bad_fraction` 0 the first bad record raises. Otherwise `report` counts
    bad records by reason and good records under "documents"; without a `report` the log
    gets the counts at the end. Memory does not grow.

    Raises:
      BadDocument: for the first bad record, if `max_bad_fraction` is 0.
      UserError: at the end, if the share of bad records is above `max_bad_fraction`,
        or no record is good.
    """
    if not 0 <= max_bad_fraction <= 1:
        raise UserError(
            f"max_bad_fraction {max_bad_fraction} is not a share from 0 to 1"
        )
    counts: Counter = Counter()
    first = None
    with contextlib.closing(Seen()) as ids:
        for place, record in records:
            try:
                document = convert(record, place)
                if not ids.add(document.id):
                    detail = f"{document.id!r} was used before"
                    raise BadDocument(place, "duplicate id", detail)
            except BadDocument as error:
                if max_bad_fraction <= 0:
                    raise _with_mend(error) from None
                counts[error.reason] += 1
                first = first or error
                continue
            counts["documents"] += 1
            yield document
    _check_counts(counts, max_bad_fraction, first)
    if report is None:
        warn_of_bad(counts, str(first))
    else:
        report.update(counts)


def _with_mend(error: BadDocument) -> BadDocument:
    detail = error.detail
    if error.raw and (names := encodings(error.raw)):
        detail += (
            f"; it can be read as {' or '.join(names)}: name the encoding of the file "
            f"with encoding (--encoding {names[0]})"
        )
    mend = "" if error.detail == LIST else MEND
    return BadDocument(error.place, error.reason, detail + mend)


def read_tables(
    tables: Mapping[str, Iterable[Mapping]],
    names: Mapping[str, str],
    label_of: Callable[[Any], Any],
    place: str,
    max_bad_fraction: float,
    report: Counter | None,
) -> Iterator[Document]:
    """The documents of tables by split, one a row, as `read`; ids are "SPLIT/NUMBER".

    names: the column of each key of a record; label_of: makes labels of its values.
    """
    rows = (
        (f"{place}, split {split}, example {number}", (split, number, row))
        for split, table in tables.items()
        for number, row in enumerate(table)
    )

    def convert(record: tuple[str, int, Mapping], where: str) -> Document:
        split, number, row = record
        values = {key: row[name] for key, name in names.items()}
        for key, value in values.items():
            if isinstance(value, bytes):
                values[key] = decode(value, where)
        if "label" in values:
            values["label"] = label_of(values["label"])
        own = {"id": f"{split}/{number}", "split": split.partition("[")[0]}
        return parse(own | values, where)

    return read(rows, convert, max_bad_fraction, report)


def json_value(text: str, place: str) -> Any:
    """The value of a text in JSON. Raises BadDocument for another text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadDocument(place, "bad JSON", str(error)) from None


def _check_counts(
    counts: Counter, max_bad_fraction: float, first: BadDocument | None
) -> None:
    total, bad = counts.total(), counts.total() - counts["documents"]
    reasons = by_reason(counts)
    if bad > max_bad_fraction * total:
        raise UserError(
            f"{bad} of {total} documents are bad ({reasons}), more than "
            f"max_bad_fraction={max_bad_fraction}; mend them, the first is {first}"
        )
    if total == bad:
        left = f"; {bad} bad records were left out ({reasons})" if bad else ""
        raise NoDocuments(f"empty corpus: the source has no documents{left}")


def warn_of_bad(counts: Counter, see: str) -> None:
    """Warns of what `read` left out, if anything; once for equal counts and place.

    see: the first bad record, or the file.
    """
    if bad := counts.total() - counts["documents"]:
        text = "left out %d of %d documents, which are bad: %s; see %s"
        once.warn(text, bad, counts.total(), by_reason(counts), see)


def by_reason(counts: Counter) -> str:
    """What was left out, such as "2 duplicate id, 1 bad JSON"."""
    return ", ".join(
        f"{number} {reason}"
        for reason, number in counts.most_common()
        if reason != "documents"
    )


def _name(record: Mapping, key: str, place: str, required: bool = False) -> str | None:
    value = record.get(key)
    if value is None or value == "":
        if required:
            raise BadRecord(place, "missing key", "no 'id'")
        return None
    if not (isinstance(value, str) or records_lib.is_number(value)):
        raise records_lib.wrong(place, repr(key), "a string or a whole number", value)
    return str(value)


def _label(record: Mapping, place: str) -> str | None:
    """The label; a truth value is one, and so is a whole number that pandas has written
    as 1.0 because other rows have gaps (NaN), which are no label."""
    value = record.get("label")
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return _name(record, "label", place)


def _split(record: Mapping, place: str) -> str | None:
    """The split; well-known names may be in capitals."""
    name = _name(record, "split", place)
    plain = name and name.strip().lower()
    return plain if plain in SPLITS else name


def _links(record: Mapping, place: str) -> tuple[str, ...]:
    links = records_lib.items(record, "links", place)
    if not all(isinstance(link, str) or records_lib.is_number(link) for link in links):
        raise BadRecord(place, "wrong type", "'links' must be a list of ids")
    return tuple(map(str, links))


def _metadata(record: Mapping, place: str) -> dict[str, Any]:
    metadata = record.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise records_lib.wrong(place, "'metadata'", "an object", metadata)
    extra = {key: value for key, value in record.items() if key not in KEYS}
    return {**metadata, **extra}


def parts(
    documents: Iterable[Document], most: int, characters: int
) -> Iterator[list[Document]]:
    """Consecutive documents in lists of `most` documents or about `characters`."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += sum(len(section.text) for section in document.sections)
        if len(batch) == most or size >= characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
