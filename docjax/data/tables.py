"""Records from tables with types: Parquet, Arrow and Excel files, and what Python holds
(DataFrames of pandas and polars, tables of pyarrow, datasets of Hugging Face)."""

import datetime
import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from docjax.data import columns
from docjax.data.documents import BadDocument, parsing
from docjax.data.streams import ARROW_STREAM, Opened
from docjax.data.table import Row, Table
from docjax.errors import UserError, library

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
        yield {key: _plain(named(key, value)) for key, value in row.items()}


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


def _plain(value: Any) -> Any:
    """A value of Python in place of one of NumPy or pandas; None for a gap."""
    if value is None or isinstance(value, str | bytes | list | tuple | dict):
        return value
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    is_gap = (
        isinstance(value, Real) and not isinstance(value, int) and math.isnan(value)
    )
    return None if is_gap or type(value).__name__ in ("NAType", "NaTType") else value


def parquet(file: Opened) -> Table:
    """The rows of a Parquet file. Raises UserError if it is damaged."""
    with parsing(file.name, "Parquet"):
        opened = pyarrow.parquet.ParquetFile(file.whole())
    batches = lambda: opened.iter_batches(ROWS)
    return _table(file, "Parquet", opened.schema_arrow, batches)


def arrow(file: Opened) -> Table:
    """The rows of an Arrow or Feather file. Raises UserError if it is damaged."""
    is_stream = file.head.startswith(ARROW_STREAM)
    read = pa.ipc.open_stream if is_stream else pa.ipc.open_file
    with parsing(file.name, "Arrow"):
        opened = read(file.whole())

    def batches() -> Iterator[pa.RecordBatch]:
        if is_stream:
            yield from opened
        else:
            for number in range(opened.num_record_batches):
                yield opened.get_batch(number)

    return _table(file, "Arrow", opened.schema, batches)


def _table(
    file: Opened,
    kind: str,
    schema: pa.Schema,
    batches: Callable[[], Iterable[pa.RecordBatch]],
) -> Table:
    columns.check_unique(schema.names, file.name)
    named = class_names(_features(schema))

    def rows() -> Iterator[Row]:
        with parsing(file.name, kind):
            found = (row for batch in batches() for row in batch.to_pylist())
            for number, row in enumerate(found, start=1):
                values = {key: _plain(named(key, value)) for key, value in row.items()}
                yield f"{file.name}, row {number}", values

    return Table(kind, schema.names, rows())


def _features(schema: pa.Schema) -> dict[str, Any]:
    """The features that the library `datasets` writes into a schema."""
    try:
        facts = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = facts["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return features if isinstance(features, dict) else {}


def excel(file: Opened) -> Table:
    """The rows of the only sheet with cells of an Excel file; values are shown as texts.

    Raises:
      UserError: without the library, for a damaged file, for several sheets with cells,
        and for two columns of one name.
    """
    openpyxl = library("openpyxl", f"{file.name}: Excel", "files")
    with warnings.catch_warnings(), parsing(file.name, "Excel"):
        warnings.simplefilter("ignore")  # styles and the like that it does not keep
        book = openpyxl.load_workbook(file.whole(), read_only=True, data_only=True)
        sheets = {sheet.title: _cells(sheet) for sheet in book.worksheets}
    sheets = {title: rows for title, rows in sheets.items() if rows}
    if len(sheets) > 1:
        raise UserError(
            f"{file.name}: {len(sheets)} sheets have cells ({', '.join(sheets)}): keep "
            "the sheet of the documents, or save it as .csv"
        )
    rows = next(iter(sheets.values()), [])
    header = rows[0][1] if rows else []
    names = [name or f"column {n}" for n, name in enumerate(header, start=1)]
    columns.check_unique(names, file.name)
    return Table("Excel", names, _rows_of_sheet(file.name, names, rows[1:]))


def _cells(sheet: Any) -> list[tuple[int, list[str | None]]]:
    """The rows of a sheet that are not empty, each with its number and without the
    empty cells at its end."""
    sheet.reset_dimensions()  # some programs write wrong ones
    rows = []
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        cells = [_shown(cell) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            rows.append((number, cells))
    return rows


def _rows_of_sheet(
    name: str, names: Sequence[str], rows: Iterable[tuple[int, list[str | None]]]
) -> Iterator[Row]:
    for number, cells in rows:
        place = f"{name}, row {number}"
        if len(cells) > len(names):
            detail = (
                f"{len(cells)} cells below a header of {len(names)}: name all columns"
            )
            yield place, BadDocument(place, "wrong columns", detail)
        else:
            cells += [None] * (len(names) - len(cells))
            yield place, dict(zip(names, cells, strict=True))


def _shown(cell: Any) -> str | None:
    """A cell as a text; None for an empty cell."""
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    if isinstance(cell, datetime.datetime | datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell)
