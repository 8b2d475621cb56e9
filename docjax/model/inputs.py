"""What users give to a model: texts, dicts and Documents, single or in a list."""

from collections.abc import Collection, Iterable, Mapping
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from docjax.data import documents as documents_lib
from docjax.data import tables
from docjax.errors import UserError
from docjax.types import Document, Section

Item = str | Mapping | Document  # a dict as in a JSON-lines corpus
Items = Iterable[Any]  # a list, an array of texts, or a column of a table
SHOWN = 40  # characters of a value in an error


def as_list(items: Any, what: str = "documents") -> tuple[list, bool]:
    """The items as a list, and whether the user gave a single item.

    Columns of pandas, polars and datasets, arrays of NumPy and arrays of Arrow are
    lists. Raises UserError for a table, and for what has no items or no order.
    """
    if getattr(items, "ndim", 1) == 0 or hasattr(items, "as_py"):
        items = tables.plain(items)
    if isinstance(items, Item):
        return [items], True
    return items_of(items, what), False


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
        expected = f"a list of {what}"
        if what == "documents":
            expected = "a text, a dict, a Document or a list of these"
        raise UserError(f"the {what} are {described(items)}: give {expected}")
    listed = tables.column(items)
    return list(items) if listed is None else listed


def as_document(item: Any, number: int, what: str = "document") -> Document:
    """An item as a Document; `number` names it in errors and replaces a missing id.
    Raises UserError for an item without text; `what` says in the error what it is."""
    place = f"{what} {number}"
    if isinstance(item, Document):
        _check_fields(item, place)
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


def _check_fields(document: Document, place: str) -> None:
    """Raises UserError for a Document whose fields have other types than they say."""
    for name in ("id", "title"):
        if not isinstance(getattr(document, name), str):
            value = shown(getattr(document, name))
            raise UserError(
                f"{place}: the {name} of the Document is {value}: give a text"
            )
    sections = document.sections
    are_texts = isinstance(sections, tuple | list) and all(
        isinstance(each, Section)
        and isinstance(each.heading, str)
        and isinstance(each.text, str)
        for each in sections
    )
    if not are_texts:
        raise UserError(
            f"{place}: the sections of the Document are {shown(sections)}: give a tuple "
            "of docjax.Section(heading, text)"
        )


def as_documents(items: Iterable[Any]) -> list[Document]:
    """All items as Documents, so that a bad one is found before hours of work. Raises
    UserError as `as_document`."""
    return [as_document(item, number) for number, item in enumerate(items)]


def as_corpus(documents: Any) -> list[Document]:
    """The documents of a table or a list, each with an id of its own.

    Raises:
      UserError: as `tables.documents` and `as_document`; without documents; and for two
        documents with one id.
    """
    is_dict = isinstance(documents, Mapping)
    if tables.is_table(documents) or (
        is_dict and documents and all(map(tables.is_table, documents.values()))
    ):
        documents = list(tables.documents(documents))
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
    text = " ".join(repr(value).split())
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


def check_name(name: str, value: Any, known: Collection[str]) -> None:
    """Raises UserError for an argument that is none of the known names."""
    if not isinstance(value, str) or value not in known:
        raise UserError(f"{name} {shown(value)} is none of {', '.join(known)}")


def check_flag(name: str, value: Any) -> None:
    """Raises UserError for an argument that is neither true nor false; None is false."""
    if value is not None and not isinstance(value, bool | np.bool_ | Integral):
        raise UserError(f"{name} {shown(value)} is no switch: give True or False")


def check_path(what: str, path: Any) -> None:
    """Raises UserError for what cannot be the name of a file or a folder."""
    if not isinstance(path, str | PathLike) or isinstance(path, bytes):
        raise UserError(f"{what} is {described(path)}: give the name of a folder")
    parts = Path(path).parts
    if not str(path).strip() or "\0" in str(path) or any(len(p) > 255 for p in parts):
        raise UserError(f"{what} {shown(str(path))} cannot be the name of a folder")
