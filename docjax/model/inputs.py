"""What users give to a model: texts, dicts and Documents, single or in a list."""

from collections.abc import Iterable, Mapping
from numbers import Integral
from os import PathLike
from typing import Any

from docjax.data import documents as documents_lib
from docjax.data import tables
from docjax.errors import UserError
from docjax.types import Document

Item = str | Mapping | Document  # a dict as in a JSON-lines corpus
Items = Iterable[Any]  # a list, an array of texts, or a column of a table
SHOWN = 40  # characters of a value in an error


def as_list(items: Any) -> tuple[list, bool]:
    """The items as a list, and whether the user gave a single item.

    Columns of pandas, polars and datasets, arrays of NumPy and arrays of Arrow are
    lists. Raises UserError for a table, and for what has no items or no order.
    """
    if getattr(items, "ndim", 1) == 0 or hasattr(items, "as_py"):
        items = tables.plain(items)
    if isinstance(items, Item):
        return [items], True
    return items_of(items), False


def items_of(items: Any, what: str = "documents") -> list:
    """The items of a list or a column. Raises UserError, which says `what` they should
    be, for anything else."""
    kind = type(items).__name__
    if isinstance(items, Item):
        raise UserError(
            f"a {kind} is no list of {what}: put one {what.removesuffix('s')} into [ ]"
        )
    if tables.is_table(items) or getattr(items, "ndim", 1) != 1:
        raise UserError(
            f"a {kind} is no list of {what}: of a table give one column, such as "
            "table['text'], or its rows as dicts (to a ColumnTransformer give the name "
            "of the column without [ ])"
        )
    if not isinstance(items, Iterable) or isinstance(
        items, bytes | bytearray | PathLike | set | frozenset
    ):
        raise UserError(
            f"the {what} are {described(items)}: give "
            + (
                "a text, a dict, a Document or a list of these"
                if what == "documents"
                else "a list"
            )
        )
    listed = tables.column(items)
    return list(items) if listed is None else listed


def as_document(item: Any, number: int, what: str = "document") -> Document:
    """An item as a Document; `number` names it in errors and replaces a missing id.
    Raises UserError for an item without text; `what` says in the error what it is."""
    place = f"{what} {number}"
    if isinstance(item, Document):
        documents_lib.check_text(item, place)
        return item
    item = tables.plain(item)
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, Mapping):
        expected = "a text, a dict or a Document" if what == "document" else "a text"
        raise UserError(f"{place} is {described(item)}: give {expected}")
    record = {key: tables.plain(value) for key, value in item.items()}
    record = {key: value for key, value in record.items() if value is not None}
    if "id" not in record and "_id" not in record:
        record["id"] = str(number)
    if not {"text", "sections"} & record.keys():
        names = ", ".join(map(str, item)) or "no key"
        raise UserError(f"{place} has neither 'text' nor 'sections', but {names}")
    try:
        return documents_lib.parse(record, place)
    except documents_lib.BadDocument as error:
        detail = error.detail.replace("an object", "a dict")  # JSON's word
        raise documents_lib.BadDocument(place, error.reason, detail) from None


def as_documents(items: Iterable[Any]) -> list[Document]:
    """All items as Documents, so that a bad one is found before hours of work. Raises
    UserError as `as_document`."""
    return [as_document(item, number) for number, item in enumerate(items)]


def as_corpus(documents: Any) -> list[Document]:
    """The documents of a table or a list, each with an id of its own.

    Raises:
      UserError: as `tables.records` and `as_document`; without documents; and for two
        documents with one id.
    """
    is_dict = isinstance(documents, Mapping)
    if tables.is_table(documents) or (
        is_dict and documents and all(map(tables.is_table, documents.values()))
    ):
        documents = tables.records(documents)
    read = as_documents(items_of(documents))
    if not read:
        raise UserError("there are no documents: give at least one")
    numbers: dict[str, int] = {}
    for number, document in enumerate(read):
        first = numbers.setdefault(document.id, number)
        if first != number:
            raise UserError(
                f"document {number} has the id {shown(document.id)} of document {first}: "
                "give each an id of its own"
            )
    return read


def described(value: Any) -> str:
    """A value that is no text, for an error: what it is, and how it becomes a text."""
    if tables.is_missing(value):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return "bytes, not text (decode them: value.decode('utf-8'))"
    if isinstance(value, PathLike):
        return f"the path {shown(str(value))}, not its text (read it: path.read_text())"
    if isinstance(value, set | frozenset):
        return "a set, which has no order"
    if isinstance(value, bool | Integral | float):
        return f"the number {value}" if not isinstance(value, bool) else str(value)
    kind = type(value).__name__
    return f"an {kind}" if kind[:1].lower() in "aeiou" else f"a {kind}"


def shown(value: Any) -> str:
    """A value in an error: in one line, and not too long."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def check_whole(name: str, value: Any, optional: bool = True) -> None:
    """Raises UserError for an argument that is no whole number of at least 1; None is
    refused too if it is not `optional`."""
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, Integral):
        kind = type(value).__name__
        raise UserError(f"{name} {shown(value)} is a {kind}: give a whole number")
    if value < 1:
        raise UserError(f"{name} {value}: give at least 1")
