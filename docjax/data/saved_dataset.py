"""Datasets of Hugging Face `datasets`, which is not installed by default."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docjax.data.documents import parsing
from docjax.data.table import Row, Table
from docjax.data.tables import records
from docjax.errors import UserError, library


def is_saved(path: str) -> bool:
    """Whether `save_to_disk` wrote a folder."""
    return any(
        Path(path, name).exists() for name in ("dataset_dict.json", "state.json")
    )


def load(path: str) -> dict[str, Any]:
    """The datasets in a folder that `save_to_disk` wrote, by split; the split of a
    single dataset is "". Raises UserError for a damaged folder."""
    datasets = library("datasets", f"{path}: a saved dataset", "huggingface")
    try:
        found = datasets.load_from_disk(path)
    except Exception as error:  # noqa: BLE001 of any of its readers
        raise UserError(f"{path}: a damaged dataset ({cause(error)})") from None
    return dict(found) if isinstance(found, dict) else {"": found}


def tables(path: str) -> dict[str, Table]:
    """The tables in a folder that `save_to_disk` wrote, by split."""
    return {split: of(table, path, split) for split, table in load(path).items()}


def of(table: Any, path: str, split: str) -> Table:
    """A dataset as a table."""
    where = f"{path}, split {split}" if split else path

    def rows() -> Iterator[Row]:
        with parsing(where, "a saved dataset"):
            for number, row in enumerate(records(table)):
                yield f"{where}, row {number}", row

    return Table("a saved dataset", table.column_names, rows())


def cause(error: BaseException) -> str:
    """The first line of an error, and that of its deepest cause if it says more."""
    texts = []
    while error is not None:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        texts.append(" ".join(lines[0].split()))
        error = error.__cause__ or (
            not error.__suppress_context__ and error.__context__
        )
        error = error or None
    return ": ".join(dict.fromkeys([texts[0], texts[-1]]))
