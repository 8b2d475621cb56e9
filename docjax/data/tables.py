"""Records from tables in Python: DataFrames of pandas and polars, tables of pyarrow, and
datasets of Hugging Face."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

from docjax.data import columns
from docjax.errors import UserError

ROWS = 256  # that are read at once


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
    for row in _rows_of(table):
        yield {key: plain(named(key, value)) for key, value in row.items()}


def column_names(table: Any) -> list[str] | None:
    """The names of the columns of a table in memory; None for another object."""
    if hasattr(table, "schema") and hasattr(table, "to_pylist"):  # of pyarrow
        return table.schema.names
    if hasattr(table, "column_names") and hasattr(table, "features"):
        return list(table.column_names)
    if hasattr(table, "columns") and hasattr(table, "dtypes"):
        return [str(name) for name in table.columns]
    return None


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
    """A value of Python in place of one of NumPy or pandas; None for a gap."""
    if value is None or isinstance(value, str | bytes | list | tuple | dict):
        return value
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    is_gap = (
        isinstance(value, Real) and not isinstance(value, int) and math.isnan(value)
    )
    return None if is_gap or type(value).__name__ in ("NAType", "NaTType") else value
