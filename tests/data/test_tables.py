"""Tables and columns of other libraries as records and as plain values."""

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from docjax.data import tables
from docjax.errors import UserError

ROWS = {"text": ["a b", "c"], "label": [1, None], "title": [None, "T"]}
RECORDS = [{"text": "a b", "label": 1}, {"text": "c", "title": "T"}]
TABLES = {
    "pandas": pd.DataFrame(ROWS),
    "polars": pl.DataFrame(ROWS),
    "lazy polars": pl.LazyFrame(ROWS),
    "Arrow": pa.table(ROWS),
    "datasets": datasets.Dataset.from_dict(ROWS),
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_table_gives_the_same_records(kind):
    """pandas makes the labels 1.0 and NaN, which are 1 and missing."""
    assert tables.is_table(TABLES[kind])
    assert tables.records(TABLES[kind]) == RECORDS


def test_tables_by_split_are_joined():
    parts = datasets.DatasetDict(train=TABLES["datasets"], test=TABLES["datasets"])
    found = tables.records(parts)
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
    assert tables.records(table) == [{"text": "a", "label": "y"}, {"text": "b"}]


def test_cells_are_plain_values():
    cells = {"text": ["a"], "links": [np.array(["x"])], "label": [True], "n": [np.nan]}
    assert tables.records(pd.DataFrame(cells)) == [
        {"text": "a", "links": ["x"], "label": "True"}
    ]


def test_a_table_without_a_text_names_its_columns():
    with pytest.raises(UserError, match="no column text, but Body, label: rename the"):
        tables.records(pd.DataFrame({"Body": ["a"], "label": [1]}))


def test_a_table_that_cannot_be_read_is_one_line():
    twice = pd.DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(UserError, match="the table cannot be read") as error:
        tables.records(twice)
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="a list is no table"):
        tables.records(["a"])


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
