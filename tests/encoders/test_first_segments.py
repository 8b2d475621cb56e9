"""Documents of several vectors, against NumPy and from training to search."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import docjax
from docjax.encoders.first_segments import FirstSegments
from docjax.errors import UserError
from docjax.model.build_index import build_index
from docjax.model.search import search, search_index
from docjax.retrieval import index_folder
from docjax.types import Document, Section


def test_the_first_segments_stand_side_by_side():
    vectors = jnp.arange(12.0).reshape(2, 3, 2)
    lengths = jnp.array([[5, 5, 5], [5, 0, 0]])
    found = jax.jit(FirstSegments(parts=2).apply)({}, vectors, lengths)
    np.testing.assert_array_equal(found, [[0, 1, 2, 3], [6, 7, 6, 7]])
    found = jax.jit(FirstSegments(parts=4).apply)({}, vectors, lengths)
    np.testing.assert_array_equal(found[0], [0, 1, 2, 3, 4, 5, 0, 1])
    with pytest.raises(UserError, match="encoder.document.parts 0: give at least 1"):
        jax.jit(FirstSegments(parts=0).apply)({}, vectors, lengths)


def test_queries_and_segments_are_projected_alike():
    module, vectors = FirstSegments(parts=2, projected=True), jnp.ones((1, 2, 6))
    lengths = jnp.array([[3, 3]])
    params = jax.jit(module.init)(jax.random.key(0), vectors, lengths)
    document = jax.jit(module.apply)(params, vectors, lengths)
    query = module.apply(params, vectors[:, 0], method="query")
    np.testing.assert_allclose(document, np.tile(query, 2), atol=1e-6)


def several():
    """A smoke run whose documents have three vectors."""
    config = docjax.config.load("retriever", variant="smoke")
    config.units = dict(fn="docjax.data.units.Whole")
    config.encoder.document = dict(
        fn="docjax.encoders.first_segments.FirstSegments", parts=3, projected=True
    )
    config.graph = None
    config.objective.parts = 3
    config.limits.update(training_units=3, inference_segments=3, segment_tokens=32)
    return config


@pytest.fixture(scope="module")
def model(tmp_path_factory, one_device, no_reports):
    return docjax.train(several(), tmp_path_factory.mktemp("runs") / "several")


TEXTS = [f"{word} of a gradient and a step. " * 20 for word in ("sum", "mean", "max")]


def test_a_query_finds_the_document_of_the_best_segment(model, tmp_path):
    documents = [
        Document(f"d{i}", (Section("", text),))
        for i, text in enumerate([*TEXTS, "short"])
    ]
    queries = {"q": "the mean of gradients", "r": "a step"}
    found = search(model, documents, queries, {})
    asked = model.encode_queries(list(queries.values()))
    vectors = model.encode(documents).reshape(4, 3, -1)
    unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)
    scores = np.einsum("qd,npd->qnp", unit(asked), unit(vectors)).max(-1)
    for row, (name, of) in enumerate(found.items()):
        assert list(queries)[row] == name
        expected = {f"d{i}": scores[row, i] for i in np.argsort(-scores[row])}
        assert of == pytest.approx(expected, abs=1e-5)


def test_queries_and_documents_are_compared_in_python(model):
    queries, documents = (
        model.encode_queries(["the mean", "a step"]),
        model.encode(TEXTS),
    )
    found = model.similarity(queries, documents)
    parts = documents.reshape(3, 3, -1)
    unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)
    expected = np.einsum("qd,npd->qnp", unit(queries), unit(parts)).max(-1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert model.encode_queries([]).shape == (0, queries.shape[1])


def test_a_long_query_is_its_first_segment_and_said(model, caplog):
    long = "a gradient step. " * 60
    found = model.encode_queries_of_any_length(["the mean", long])
    assert "1 long queries: their first segment is read" in caplog.text
    first = model.encode([long])[:, : found.shape[1]]
    np.testing.assert_array_equal(found[1:], first)
    np.testing.assert_allclose(found[:1], model.encode_queries(["the mean"]), atol=1e-6)


def test_what_is_not_read_is_counted(model):
    _, stats = model.encode(["a gradient step. " * 200], return_stats=True)
    assert stats["segments_cut"] > 0


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"objective.parts": 2}, "parts is 3 and objective.parts is 2: give the same"),
        ({"limits.inference_segments": 9}, "inference_segments is 9, but encoder.docu"),
        (
            {"examples": {"fn": "docjax.data.examples.Documents"}},
            "encoder.document.parts 3: queries are compared",
        ),
    ],
)
def test_what_does_not_fit_several_vectors_is_told(tmp_path, changed, message):
    config = several()
    for field, value in changed.items():
        section, _, name = field.rpartition(".")
        (config[section] if section else config)[name] = value
    with pytest.raises(UserError, match=message):
        docjax.train(config, tmp_path / "run")


def test_an_index_of_several_vectors_gives_the_same(model, tmp_path):
    path = tmp_path / "corpus.jsonl"
    lines = [f'{{"id": "d{i}", "text": "{text}"}}' for i, text in enumerate(TEXTS)]
    path.write_text("\n".join(lines))
    build_index(model, str(path), tmp_path / "index")
    index = index_folder.load(tmp_path / "index", model.fingerprint())
    queries = {"q": "the mean of gradients"}
    documents = [index.document(row) for row in range(3)]
    expected = search(model, documents, queries, {})["q"]
    found = search_index(model, index, queries, "dense")["q"]
    assert found == pytest.approx(expected, abs=1e-5)
    with pytest.raises(UserError, match="--codes int8: this model gives a document"):
        build_index(model, str(path), tmp_path / "other", kind="int8")
    with pytest.raises(UserError, match="--graph: this model gives a document"):
        build_index(model, str(path), tmp_path / "other", graph=True)
    with pytest.raises(UserError, match="truncate_dim: this model gives a document"):
        dataclasses.replace(model, truncate_dim=2)
