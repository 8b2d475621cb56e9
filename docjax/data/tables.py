"""Tables and columns in Python as records and plain values: pandas, polars, pyarrow,
NumPy, and datasets of Hugging Face. None of these libraries is imported here."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np

from docjax.data import columns
from docjax.errors import UserError

ROWS = 256  # that are read at once
NUMBERED = "id", "label"  # pandas makes a column of whole numbers with gaps floats
RENAMED = {key: f"rename its column to {key}" for key in columns.USUAL}


def is_table(value: Any) -> bool:
    """Whether a value has rows and named columns."""
    return _is_lazy(value) or column_names(value) is not None


def documents(table: Any) -> Iterator[dict[str, Any]]:
    """The rows of a table as the records of a JSON-lines corpus, without gaps.

    The usual names of columns count, as in files (docs/files.md). A dict of tables, such
    as a DatasetDict, gives the rows of all; the names are the splits.

    Raises:
      UserError: for another object, and for a table without a column for the text.
    """
    if isinstance(table, Mapping) and table and all(map(is_table, table.values())):
        for split, part in table.items():
            for row in documents(part):
                yield {"split": str(split)} | row
        return
    if _is_lazy(table):
        table = table.collect()
    rows = records(table)
    found = column_names(table) or []
    names = columns.resolve({}, found, f"the {type(table).__name__}", ways=RENAMED)
    yield from (record(names.record(row)) for row in rows)


def record(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without gaps, with whole numbers where an id or a label is one."""
    found = {name: plain(value) for name, value in row.items()}
    for name in NUMBERED:
        value = found.get(name)
        if isinstance(value, bool):
            found[name] = str(value)
        elif isinstance(value, float) and value.is_integer():
            found[name] = int(value)
    return {name: value for name, value in found.items() if value is not None}


def records(table: Any) -> Iterator[dict[str, Any]]:
    """The rows of a table in memory, with Python's values; a gap is None.

    table: a DataFrame of pandas or polars, a Table or RecordBatch of pyarrow, or a
    Dataset of Hugging Face, whose class numbers become class names.

    Raises:
      UserError: for another object, and for two columns of one name.
    """
    names = column_names(table)
    if names is None:
        raise UserError(
            f"a {type(table).__name__} is no table: give a DataFrame of pandas or "
            "polars, a pyarrow Table or a datasets.Dataset"
        )
    columns.check_unique(names, f"the {type(table).__name__}")
    named = class_names(getattr(table, "features", None) or {})
    return (
        {key: plain(named(key, value)) for key, value in row.items()}
        for row in _rows_of(table)
    )


def column_names(table: Any) -> list[str] | None:
    """The names of the columns of a table in memory; None for another object."""
    if hasattr(table, "schema") and hasattr(table, "to_pylist"):  # of pyarrow
        return table.schema.names
    if hasattr(table, "column_names") and hasattr(table, "features"):
        return list(table.column_names)
    if hasattr(table, "columns") and hasattr(table, "dtypes"):
        return [str(name) for name in table.columns]
    return None


def column(values: Any) -> list[Any] | None:
    """The values of a column of a table, of an array, or of Arrow; None for others."""
    for method in ("to_pylist", "to_list"):  # of pyarrow; of pandas and polars
        if hasattr(values, method):
            return [plain(value) for value in getattr(values, method)()]
    if isinstance(values, np.ndarray):
        return [plain(value) for value in values.tolist()]
    return None


def _is_lazy(value: Any) -> bool:
    """Whether a value is a LazyFrame of polars."""
    return hasattr(type(value), "collect") and hasattr(type(value), "collect_schema")


def _rows_of(table: Any) -> Iterable[Mapping[str, Any]]:
    if hasattr(table, "to_pylist"):  # a table or a batch of pyarrow
        batches = table.to_batches(ROWS) if hasattr(table, "to_batches") else [table]
        return (row for batch in batches for row in batch.to_pylist())
    if hasattr(table, "iter_rows"):  # polars
        return table.iter_rows(named=True)
    if hasattr(table, "itertuples"):  # pandas
        names = [str(name) for name in table.columns]
        rows = table.itertuples(index=False, name=None)
        return (dict(zip(names, row, strict=True)) for row in rows)
    return table


def class_names(features: Mapping[str, Any]) -> Callable[[str, Any], Any]:
    """A function of column and value, that gives the name of a class for its number,
    and None for -1; `features` are those of a dataset of Hugging Face."""
    names = {
        key: feature["names"] if isinstance(feature, dict) else feature.names
        for key, feature in features.items()
        if (isinstance(feature, dict) and "names" in feature)
        or hasattr(feature, "int2str")
    }

    def named(key: str, value: Any) -> Any:
        if key not in names or not isinstance(value, int):
            return value
        return names[key][value] if 0 <= value < len(names[key]) else None

    return named


def plain(value: Any) -> Any:
    """A value of Python in place of one of NumPy, pandas or Arrow; None for a gap."""
    if value is None or isinstance(value, str | bytes | list | tuple | dict):
        return value
    if hasattr(value, "as_py"):  # of pyarrow
        return value.as_py()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return None if is_missing(value) else value


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or pandas' NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real) and not isinstance(value, int) and math.isnan(value)
