"""Turns records into Documents, and checks what a record holds.

`counted.py` counts bad records, and `sources/` gets records from files, folders and packages. `records.py` holds the part
that exported folders need too.
"""

import contextlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from docjax.data import records as records_lib
from docjax.data.records import BadRecord
from docjax.errors import UserError
from docjax.types import Document, Section

KEYS = (
    *("id", "_id", "title", "text", "sections", "label", "split"),
    *("links", "edges", "query", "metadata"),
)

SPLITS = ("train", "test", "dev", "valid", "val", "validation")

OBJECT = re.compile(r"\s*\{\s*[\"}]")  # the start of an object in JSON


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


def to_line(document: Document) -> str:
    """Id, title, sections and links as a line of JSON, which docjax reads."""
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
    except UnicodeDecodeError as error:
        reason = "invalid UTF-8" if error.encoding == "utf-8" else "invalid encoding"
        detail = f"byte {error.start} is not {error.encoding} ({error.reason})"
        raise BadDocument(place, reason, detail, raw) from None
    except (LookupError, ValueError):
        raise UserError(f"encoding={encoding!r}: not an encoding of Python") from None


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


def json_value(text: str, place: str) -> Any:
    """The value of a text in JSON. Raises BadDocument for another text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadDocument(place, "bad JSON", str(error)) from None


def _name(record: Mapping, key: str, place: str, required: bool = False) -> str | None:
    value = record.get(key)
    if isinstance(value, float):  # pandas writes 1 as 1.0 if other rows have gaps, NaN
        value = int(value) if value.is_integer() else value
        value = None if isinstance(value, float) and math.isnan(value) else value
    if value is None or (isinstance(value, str) and not value.strip()):
        if required:
            raise BadRecord(place, "missing key", "no 'id'")
        return None
    if not (isinstance(value, str) or records_lib.is_number(value)):
        raise records_lib.wrong(place, repr(key), "a string or a whole number", value)
    return str(value)


def _label(record: Mapping, place: str) -> str | None:
    """The label; a truth value is one."""
    value = record.get("label")
    return str(value) if isinstance(value, bool) else _name(record, "label", place)


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
