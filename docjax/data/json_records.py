"""Records from JSON: a line each, a list of objects, or an object that holds a list."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from docjax.data import columns
from docjax.data.documents import BadDocument, decode, json_value
from docjax.data.streams import Opened
from docjax.data.table import Row, Table
from docjax.errors import UserError

SEEN = 100  # records whose keys are the columns
IS_JSON = re.compile(r"\.json(\.\w+)?$", re.IGNORECASE)  # and not JSON lines
HOLDS_LIST = re.compile(rb"\{\s*\"(?!sections)[^\"]*\"\s*:\s*\[\s*\{")


def table(file: Opened) -> Table:
    """The records of an opened file; the columns are the keys of the first SEEN.

    Raises:
      UserError: for a file that is one JSON value without a list of objects.
    """
    rows = _lines(file) if _is_lines(file) else _whole(file)
    first = list(itertools.islice(rows, SEEN))
    records = (row for _, row in first if isinstance(row, Mapping))
    keys = dict.fromkeys(key for record in records for key in record)
    return Table("JSON", list(keys), itertools.chain(first, rows), True)


def _is_lines(file: Opened) -> bool:
    """Whether each line is a value of its own."""
    head = file.head.lstrip()
    if head.startswith(b"["):
        return False
    first, newline, others = head.partition(b"\n")
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        begins_list = not newline and HOLDS_LIST.match(first)
        return not begins_list and not IS_JSON.search(file.name)
    if not isinstance(value, dict) or others.strip():
        return True
    return not any(find(value) for find in (_lists, _split, _columns, _has_rows))


def _lines(file: Opened) -> Iterator[Row]:
    for number, line in enumerate(file.stream, start=1):
        if not line.isspace():
            place = f"{file.name}, line {number}"
            try:
                yield place, json_value(decode(line, place), place)
            except BadDocument as error:
                yield place, error


def _whole(file: Opened) -> Iterator[Row]:
    text = decode(file.stream.read(), file.name)
    try:
        value = json_value(text, file.name)
    except BadDocument as error:
        raise UserError(f"{file.name}: bad JSON: {error.detail}; mend it") from None
    name, items = _items(value, file.name)
    what = f"{file.name}, {name}item"
    for number, item in enumerate(items, start=1):
        if isinstance(item, str):
            item = {"text": item}
        yield f"{what} {number}", item


def _items(value: Any, place: str) -> tuple[str, list]:
    """The list of objects in a value, and its name."""
    if isinstance(value, list):
        return "", value
    lists = _lists(value)
    if len(lists) == 1:
        (found,) = lists.items()
        return f"{found[0]!r} ", found[1]
    if lists:
        raise UserError(
            f"{place}: {', '.join(map(repr, lists))} are {len(lists)} lists of objects: "
            "keep the list of the documents alone"
        )
    if rows := _split(value):
        return "", rows
    if table := _columns(value):
        rows = zip(*table.values(), strict=True)
        return "", [dict(zip(table, row, strict=True)) for row in rows]
    return "", list(value.values()) if _has_rows(value) else [value]


def _has_rows(value: Any) -> bool:
    """Whether an object holds a document under each key, as pandas' orient="index"."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            isinstance(each, dict) and "text" in columns.known(each)
            for each in value.values()
        )
    )


def _split(value: Any) -> list[dict[str, Any]]:
    """The rows of a table with the keys "columns" and "data", as pandas'
    orient="split"; [] for another object."""
    names, rows = (
        value.get(key) if isinstance(value, dict) else None
        for key in ("columns", "data")
    )
    if not isinstance(names, list) or not isinstance(rows, list):
        return []
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return []
    return [dict(zip(map(str, names), row, strict=True)) for row in rows]


def _lists(value: Any) -> dict[str, list]:
    """The lists of objects in an object that is not itself a document."""
    if not isinstance(value, dict) or {"text", "sections"} & value.keys():
        return {}
    is_objects = lambda v: isinstance(v, list) and v and isinstance(v[0], dict)
    return {key: each for key, each in value.items() if is_objects(each)}


def _columns(value: Any) -> dict[str, list]:
    """The columns of a table in the form of pandas: a list, or an object by row, for
    each column; {} for another object."""
    parts = list(value.values()) if isinstance(value, dict) else []
    if not parts or _has_rows(value):
        return {}
    if all(isinstance(part, list) for part in parts):
        return value if len({len(part) for part in parts}) == 1 else {}
    if not all(
        isinstance(part, dict) and part.keys() == parts[0].keys() for part in parts
    ):
        return {}
    return {key: list(part.values()) for key, part in value.items()}
