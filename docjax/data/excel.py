"""Records from Excel files."""

import datetime
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from docjax.data import columns
from docjax.data.documents import BadDocument, parsing
from docjax.data.streams import Opened
from docjax.data.table import ADD_HEADER, Row, Table
from docjax.errors import UserError, library


def table(file: Opened) -> Table:
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
    found = _rows_of_sheet(file.name, names, rows[1:])
    return Table("Excel", names, found, mend=ADD_HEADER)


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
