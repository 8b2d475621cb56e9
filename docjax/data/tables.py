"""Rows and columns that Python holds: pandas, polars, pyarrow, datasets and NumPy.

narwhals reads the first three; none of these libraries is imported here.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import narwhals as nw
import numpy as np

from docjax.errors import UserError

NUMBERED = "id", "label"  # pandas makes a column of whole numbers with gaps floats


def is_table(value: Any) -> bool:
    """Whether a value has rows and named columns."""
    return (
        nw.dependencies.is_into_dataframe(value)
        or nw.dependencies.is_polars_lazyframe(value)
        or all(hasattr(value, name) for name in ("column_names", "to_pylist"))  # Arrow
        or all(hasattr(value, name) for name in ("column_names", "features"))
    )


def records(table: Any) -> list[dict[str, Any]]:
    """The rows of a table as the records of a JSON-lines corpus.

    A column has the name of its key: text, title, label, id, split, query, links.
    Missing values (None, NaN, NA) are left out. Class numbers of a column of `datasets`
    with class names become these names, and -1 no label. A dict of tables, such as a
    DatasetDict, gives the rows of all; the names are the splits.

    Raises:
      UserError: for anything else, and for a table without "text" or "sections".
    """
    if isinstance(table, Mapping) and table and all(map(is_table, table.values())):
        return [
            {"split": str(name), **row}
            for name, part in table.items()
            for row in records(part)
        ]
    if not is_table(table):
        raise UserError(f"a {type(table).__name__} is no table")
    if nw.dependencies.is_polars_lazyframe(table):
        table = table.collect()
    names = table.column_names if hasattr(table, "column_names") else table.columns
    names = list(map(str, names))
    if not {"text", "sections"} & set(names):
        raise UserError(
            f"the table has no column text, but {', '.join(names) or 'no column'}: "
            "rename the column of the texts to text (others that are read: title, "
            "label, id, split, query, links)"
        )
    classes = {
        name: feature.names
        for name, feature in getattr(table, "features", {}).items()
        if hasattr(feature, "names")
    }
    return [record(row, classes) for row in _rows(table)]


def column(values: Any) -> list[Any] | None:
    """The values of a column of a table, of an array, or of Arrow; None for others."""
    if nw.dependencies.is_into_series(values):
        return [plain(value) for value in nw.from_native(values, series_only=True)]
    if hasattr(values, "to_pylist"):
        return values.to_pylist()
    if isinstance(values, np.ndarray):
        return [plain(value) for value in values.tolist()]
    return None


def plain(value: Any) -> Any:
    """A value as Python itself has it: None for a missing one, and no scalars of NumPy
    or Arrow."""
    if value is None or isinstance(value, str):
        return value
    if hasattr(value, "as_py"):
        return value.as_py()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return None if is_missing(value) else value


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or pandas' NA or NaT."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    return value is None or (isinstance(value, float) and math.isnan(value))


def _rows(table: Any) -> list[dict[str, Any]]:
    if hasattr(table, "to_pylist"):
        return table.to_pylist()
    if hasattr(table, "features"):
        return list(table)
    try:
        return nw.from_native(table, eager_only=True).rows(named=True)
    except (nw.exceptions.NarwhalsError, TypeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"the table cannot be read: {reason}") from None


def record(
    row: Mapping, classes: Mapping[str, list[str]] = MappingProxyType({})
) -> dict[str, Any]:
    """The record of one row; `classes`: the names of class numbers, by column."""
    found = {str(name): plain(value) for name, value in row.items()}
    for name in NUMBERED:
        value = found.get(name)
        if isinstance(value, bool):
            found[name] = str(value)
        elif isinstance(value, float) and value.is_integer():
            found[name] = int(value)
    for name, known in classes.items():
        if isinstance(found.get(name), int):
            number = found[name]
            found[name] = known[number] if 0 <= number < len(known) else None
    return {name: value for name, value in found.items() if value is not None}
