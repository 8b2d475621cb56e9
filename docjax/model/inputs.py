"""What users give to a model: texts, dicts and Documents, single or in a list."""

from collections.abc import Mapping
from typing import Any

from docjax.data import documents as documents_lib
from docjax.errors import UserError
from docjax.types import Document

Item = str | Mapping | Document  # a dict as in a JSON-lines corpus


def as_list(items: Any) -> tuple[list, bool]:
    """The items as a list, and whether the user gave a single item. Raises UserError for
    a table."""
    if isinstance(items, Item):
        return [items], True
    check_list(items)
    return list(items), False


def check_list(items: Any) -> None:
    """Raises UserError for a single item and for an array that is not 1-dimensional."""
    if isinstance(items, Item) or getattr(items, "ndim", 1) != 1:
        raise UserError(
            f"a {type(items).__name__} is no list of documents: put one document "
            "into [ ]; of a table give one column (to a ColumnTransformer its name "
            "without [ ])"
        )


def as_document(item: Item, number: int) -> Document:
    """An item as a Document; `number` names it in errors and replaces a missing id.
    Raises UserError for an item without text."""
    if isinstance(item, Document):
        documents_lib.check_text(item, f"document {number}")
        return item
    if isinstance(item, str):
        item = {"id": str(number), "text": item}
    if isinstance(item, Mapping) and "id" not in item and "_id" not in item:
        item = {**item, "id": str(number)}
    return documents_lib.parse(item, f"document {number}")
