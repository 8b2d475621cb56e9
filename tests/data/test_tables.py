"""Tables in Python as records."""

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

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
