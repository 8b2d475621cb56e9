"""Tables and columns of other libraries as records and as plain values."""

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from docjax.data import tables
from docjax.data.tables import column_names, records
from docjax.errors import UserError

ROWS = {"text": ["a", "b"], "label": [1.0, None], "year": [1999, 2000]}
EXPECTED = [
    {"text": "a", "label": 1.0, "year": 1999},
    {"text": "b", "label": None, "year": 2000},
]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS, index=["x", "y"]),
        pd.DataFrame({**ROWS, "year": pd.array([1999, 2000], "Int64")}),
        pl.DataFrame(ROWS),
        pa.table(ROWS),
        pa.RecordBatch.from_pydict(ROWS),
        datasets.Dataset.from_dict(ROWS),
    ],
    ids=lambda table: f"{type(table).__module__}.{type(table).__name__}",
)
def test_a_table_is_records_of_pythons_values(table):
    found = list(records(table))
    assert found == EXPECTED and column_names(table) == list(ROWS)
    assert {type(value) for row in found for value in row.values()} <= {
        *(str, float, int, type(None)),
    }


def test_gaps_and_arrays_are_pythons_values():
    frame = pd.DataFrame({"text": ["a"], "day": [pd.NaT], "list": [np.arange(2)]})
    frame["whole"] = pd.array([pd.NA], "Int64")
    assert list(records(frame)) == [
        {"text": "a", "day": None, "list": [0, 1]} | {"whole": None}
    ]


def test_classes_are_names():
    features = datasets.Features({"label": datasets.ClassLabel(names=["x", "y"])})
    table = datasets.Dataset.from_dict({"label": [1, -1]}, features=features)
    assert [row["label"] for row in records(table)] == ["y", None]


def test_what_is_no_table_is_one_line():
    with pytest.raises(UserError, match="a list is no table: give a DataFrame of"):
        list(records([1]))
    frame = pd.DataFrame([[1, 2]], columns=["text", "text"])
    with pytest.raises(UserError, match="the DataFrame: 2 columns are called 'text'"):
        list(records(frame))


SPARSE = {"text": ["a b", "c"], "label": [1, None], "title": [None, "T"]}
RECORDS = [{"text": "a b", "label": 1}, {"text": "c", "title": "T"}]
TABLES = {
    "pandas": pd.DataFrame(SPARSE),
    "polars": pl.DataFrame(SPARSE),
    "lazy polars": pl.LazyFrame(SPARSE),
    "Arrow": pa.table(SPARSE),
    "datasets": datasets.Dataset.from_dict(SPARSE),
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_table_gives_the_same_records(kind):
    """pandas makes the labels 1.0 and NaN, which are 1 and missing."""
    assert tables.is_table(TABLES[kind])
    assert list(tables.documents(TABLES[kind])) == RECORDS


def test_tables_by_split_are_joined():
    parts = datasets.DatasetDict(train=TABLES["datasets"], test=TABLES["datasets"])
    found = list(tables.documents(parts))
    assert [row["split"] for row in found] == ["train"] * 2 + ["test"] * 2
    assert found[0] == RECORDS[0] | {"split": "train"}


def test_class_numbers_of_datasets_become_names():
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["x", "y"]),
        }
    )
    columns = {"text": ["a", "b"], "label": [1, -1]}
    table = datasets.Dataset.from_dict(columns, features=features)
    assert list(tables.documents(table)) == [{"text": "a", "label": "y"}, {"text": "b"}]


def test_cells_are_plain_values():
    cells = {"text": ["a"], "links": [np.array(["x"])], "label": [True], "n": [np.nan]}
    assert list(tables.documents(pd.DataFrame(cells))) == [
        {"text": "a", "links": ["x"], "label": "True", "metadata": {"n": None}}
    ]


def test_usual_names_count_and_a_table_without_a_text_names_its_columns():
    found = tables.documents(pd.DataFrame({"Body": ["a"], "Category": [1]}))
    assert list(found) == [{"text": "a", "label": 1}]
    with pytest.raises(
        UserError, match="columns are 'X', 'label': rename its column to"
    ):
        list(tables.documents(pd.DataFrame({"X": ["a"], "label": [1]})))


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", None]),
        pd.Series(["a", pd.NA], dtype="string"),
        pd.Series(["a", None]).astype("category"),
        pl.Series(["a", None]),
        pa.array(["a", None]),
        pa.chunked_array([["a"], [None]]),
        np.array(["a", None], dtype=object),
        datasets.Dataset.from_dict({"text": ["a", None]})["text"],
    ],
    ids=lambda column: f"{type(column).__module__} {getattr(column, 'dtype', '')}",
)
def test_a_column_has_plain_values(column):
    found = tables.column(column)
    assert (list(column) if found is None else found) == ["a", None]


def test_values_of_other_libraries_become_plain():
    values = np.str_("a"), pa.scalar("a"), np.int64(2), np.float32("nan"), pd.NA, pd.NaT
    assert list(map(tables.plain, values)) == ["a", "a", 2, None, None, None]
