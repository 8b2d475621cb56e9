"""What users give from Python: read right, or refused in one line that says what to give."""

import decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import docjax
from docjax.errors import UserError
from docjax.model.inference import Inference
from docjax.types import Document, Section

TEXTS = ["a river", "the sea"]


@pytest.fixture(scope="module")
def model(tiny):
    return docjax.load(tiny)


@pytest.mark.parametrize(
    "texts",
    [
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        pd.Series(TEXTS),
        pd.Index(TEXTS),
        pl.Series(TEXTS),
        pa.array(TEXTS),
        pa.chunked_array([TEXTS]),
        list(pa.array(TEXTS)),
        [np.str_(text) for text in TEXTS],
        [Document("x", (Section("", text),)) for text in TEXTS],
        [{"text": text, "title": float("nan"), "label": pd.NA} for text in TEXTS],
        pd.DataFrame({"text": TEXTS, "title": [None, np.nan]}).to_dict("records"),
        dict.fromkeys(TEXTS).keys(),
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_lists_and_columns_of_every_library_are_read_alike(model, texts):
    np.testing.assert_array_equal(model.encode(texts), model.encode(TEXTS))


@pytest.mark.parametrize(
    "text", [np.str_("a river"), np.array("a river"), pa.scalar("a river")]
)
def test_a_single_text_of_every_library_gives_one_vector(model, text):
    np.testing.assert_array_equal(model.encode(text), model.encode("a river"))


GIVE = "give a text, a dict or a Document"


@pytest.mark.parametrize(
    ("item", "line"),
    [
        (None, f"document 1 is None: {GIVE}"),
        (float("nan"), f"document 1 is None: {GIVE}"),
        (pd.NA, f"document 1 is None: {GIVE}"),
        (b"a", r"document 1 is bytes, not text \(decode them"),
        (("a", "b"), f"document 1 is a tuple: {GIVE}"),
        (["a"], f"document 1 is a list: {GIVE}"),
        (5, f"document 1 is the number 5: {GIVE}"),
        (True, f"document 1 is True: {GIVE}"),
        (Path("a.txt"), r"document 1 is the path 'a.txt', not its text \(read it"),
        (decimal.Decimal(5), f"document 1 is a Decimal: {GIVE}"),
        (object, f"document 1 is a type: {GIVE}"),
        ({"body": "a"}, "document 1 has neither 'text' nor 'sections', but body"),
        ({}, "document 1 has neither 'text' nor 'sections', but no key"),
        ({"text": None}, "document 1 has neither"),
        ({"text": 5}, "document 1: wrong type: 'text' must be a string, not int"),
        (
            {"sections": ["a"]},
            "document 1: wrong type: a section must be a dict, not str",
        ),
        ({"text": "a", "metadata": 1}, "'metadata' must be a dict, not int"),
        (" ", "document 1: empty text"),
        ("\ud800", "document 1: invalid UTF-8"),
    ],
)
def test_an_item_that_is_no_document_is_named(model, item, line):
    for ask in (model.encode, model.batch, model.segment_vectors, model.similarities):
        with pytest.raises(UserError, match=line) as error:
            ask(["a river", item])
        assert "\n" not in str(error.value) and "object" not in str(error.value)


@pytest.mark.parametrize(
    ("items", "line"),
    [
        (None, "the documents are None: give a text, a dict, a Document or a list of"),
        (5, "the documents are the number 5"),
        (b"a", "the documents are bytes"),
        (Path("a.txt"), "the documents are the path 'a.txt', not its text"),
        ({"a", "b"}, "the documents are a set, which has no order"),
        (
            pd.DataFrame({"text": TEXTS}),
            "a DataFrame is no list of documents: of a table",
        ),
        (
            pl.DataFrame({"text": TEXTS}),
            "a DataFrame is no list of documents: of a table",
        ),
        (
            pl.LazyFrame({"text": TEXTS}),
            "a LazyFrame is no list of documents: of a table",
        ),
        (pa.table({"text": TEXTS}), "a Table is no list of documents: of a table"),
        (np.array([TEXTS]), "a ndarray is no list of documents: of a table"),
    ],
)
def test_what_is_no_list_of_documents_is_named(model, items, line):
    for ask in (model.encode, model.batch, model.segment_vectors):
        with pytest.raises(UserError, match=line):
            ask(items)
    for ask in (model.encode_queries, model.batch_queries):
        with pytest.raises(
            UserError, match=line.split(":")[0].replace("documents", "queries")
        ):
            ask(items)


def test_a_query_that_is_no_text_is_called_a_query(model):
    with pytest.raises(UserError, match="query 1 is None: give a text"):
        model.encode_queries(["a", None])
    with pytest.raises(UserError, match="document 1 is None"):
        model.compare("a river", None)


def test_a_bad_last_document_is_found_before_any_is_encoded(model, monkeypatch):
    monkeypatch.setattr(Inference, "_read", None)  # a call would fail
    for ask in (model.encode, model.segment_vectors):
        with pytest.raises(UserError, match="document 20000: empty text"):
            ask(["a b"] * 20_000 + [""])


@pytest.mark.parametrize(
    ("size", "line"),
    [
        ("8", "batch_size '8' is a str: give a whole number"),
        (2.0, "batch_size 2.0 is a float: give a whole number"),
        (True, "batch_size True is a bool: give a whole number"),
        (0, "batch_size 0: give at least 1"),
        (-1, "batch_size -1: give at least 1"),
    ],
)
def test_a_wrong_size_is_named(model, tiny, size, line):
    for ask in (model.encode, model.encode_queries):
        with pytest.raises(UserError, match=line):
            ask(TEXTS, batch_size=size)
    with pytest.raises(UserError, match=line.replace("batch_size", "truncate_dim")):
        model.encode(TEXTS, truncate_dim=size)
    for name in ("truncate_dim", "segments"):
        with pytest.raises(UserError, match=line.replace("batch_size", name)):
            docjax.load(tiny, **{name: size})


def test_whole_numbers_of_numpy_are_sizes(model):
    assert model.encode(TEXTS, batch_size=np.int64(8)).shape == (2, 16)


def test_vectors_may_be_changed_and_do_not_change_others(model):
    item = {"sections": [{"heading": "", "text": text} for text in TEXTS]}
    for vectors in (
        model.encode(TEXTS),
        model.encode(TEXTS[:1]),
        model.encode("a river"),
        model.encode("a river", normalize_embeddings=True),
        model.encode(TEXTS, truncate_dim=4),
        model.encode([]),
        model.encode_queries(TEXTS),
        model.encode_queries("a river"),
        *(each.vectors for each in model.segment_vectors([item, item])),
        model.similarity(model.encode(TEXTS), model.encode(TEXTS)),
        model.similarities([item, item]).segments,
        next(model.encode_stream(TEXTS)),
        *next(model.encode_with_passages(TEXTS, {})),
    ):
        vectors /= np.float32(2)
    np.testing.assert_array_equal(model.encode(TEXTS), model.encode(TEXTS))


def values() -> list:
    return [
        *(
            None,
            5,
            -1,
            2.5,
            True,
            float("nan"),
            1e400,
            10**30,
            2j,
            object(),
            object,
            len,
        ),
        *(
            "",
            " ",
            "a river",
            "\ud800",
            "\0",
            "a" * 5000,
            "a\nb" * 99,
            "no/such",
            "/tmp",
        ),
        *(
            b"a",
            bytearray(b"a"),
            memoryview(b"a"),
            Path("a.txt"),
            range(3),
            iter(["a"]),
        ),
        *(
            [],
            [[]],
            [None],
            [5],
            ["a", None],
            [["a"]],
            [("a", "b")],
            {"a"},
            {},
            {5: "a"},
        ),
        *({"text": 5}, {"text": ["a"]}, {"sections": "x"}, {"sections": [None]}),
        *({"sections": [{"heading": 1, "text": "a"}]}, {"id": [1], "text": "a"}),
        *(
            {"text": "a", "links": "x"},
            {"text": "a", "edges": [[0, 5]]},
            {"title": "x"},
        ),
        *({"text": "a", "label": 1.5}, [{"text": "a"}, {"id": "0", "text": "b"}]),
        *(
            np.zeros(3),
            np.zeros((2, 2)),
            np.zeros((2, 2, 2)),
            np.array([]),
            np.array("x"),
        ),
        *(np.array([b"a"]), np.int64(5), np.float32(2), np.datetime64("2020-01-01")),
        *(pd.Series([1, 2]), pd.Series([], dtype=object), pd.DataFrame(), pd.NaT),
        *(
            pl.Series([1]),
            pa.array([1]),
            pa.record_batch({"text": ["a"]}),
            pa.scalar(1),
        ),
        *(Document("x", ()), Document(5, (Section("", "a"),)), Document("x", None)),
        *(Document("x", (Section(None, None),)), Document("x", ("a",), title=5)),
    ]


def test_no_value_of_a_user_gives_a_traceback_or_several_lines(model, tmp_path):
    index, vectors = model.index(TEXTS), model.encode(TEXTS)
    comparison = model.compare(*TEXTS)
    calls = [
        *(model.encode, model.encode_queries, model.segment_vectors, model.batch),
        *(model.batch_queries, model.similarities, model.explain, model.classify),
        *(model.index, comparison.links, model.push_to_hub, docjax.load),
        lambda value: model.encode(["a", value]),
        lambda value: model.batch(["a"], like=value),
        lambda value: model.compare("a river", value),
        lambda value: model.similarity(value, vectors),
        lambda value: model.similarity_pairwise(vectors, value),
        lambda value: model.search(value, index),
        lambda value: model.search("a", value),
        lambda value: model.search("a", index, top=value),
        lambda value: comparison.links(kind=value),
        lambda value: model.save_pretrained(
            tmp_path, model_name=1 if value is None else value
        ),
    ]
    for name in (
        *("prompt", "prompt_name", "batch_size", "truncate_dim", "precision", "device"),
        *("output_value", "normalize_embeddings", "convert_to_tensor", "pool"),
        *("show_progress_bar", "return_stats", "chunk_size", "convert_to_numpy"),
    ):
        calls.append(lambda value, name=name: model.encode("a", **{name: value}))
    refused = 0
    for call in calls:
        for value in values():
            try:
                call(value)
            except UserError as error:
                refused += 1
                assert "\n" not in str(error), (call, value)
    assert refused > len(calls) * len(values()) // 2
