"""The nearest documents against one product of all with all."""

import jax
import numpy as np
import pytest

from docjax.retrieval import nearest
from docjax.retrieval.nearest import Nearest, as_run


def found(queries, documents, top, **keywords):
    search = Nearest(queries, top, **{"cosine": False} | keywords)
    for vectors in documents:
        search.add(vectors)
    return search.best()


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize(("rows", "queries"), [(1, 1), (7, 2), (1 << 14, 1024)])
def test_the_nearest_are_those_of_one_product(monkeypatch, cosine, rows, queries):
    monkeypatch.setattr(nearest, "ROWS", rows)
    monkeypatch.setattr(nearest, "QUERIES", queries)
    generator = np.random.default_rng(0)
    asked, vectors = (generator.normal(size=(n, 5)).astype("f") for n in (3, 50))
    best = found(asked[:, None], vectors[:, None], 4, cosine=cosine)
    if cosine:
        asked, vectors = unit(asked), unit(vectors)
    scores = asked @ vectors.T
    order = np.argsort(-scores)[:, :4]
    np.testing.assert_array_equal(best.rows, order)
    np.testing.assert_allclose(best.scores, np.sort(-scores)[:, :4] * -1, rtol=1e-5)


@pytest.mark.parametrize("rows", [16, 1 << 14])
def test_several_vectors_give_the_sum_of_the_best_products(monkeypatch, rows):
    monkeypatch.setattr(nearest, "ROWS", rows)
    generator = np.random.default_rng(1)
    documents = [
        generator.normal(size=(generator.integers(1, 12), 4)).astype("f")
        for _ in range(40)
    ]
    queries = generator.normal(size=(3, 2, 4)).astype("f")
    queries[2, 1] = 0  # a query of one vector
    scores = np.array(
        [[sum(max(d @ part) for part in query) for d in documents] for query in queries]
    )
    best = found(queries, documents, 40)
    np.testing.assert_array_equal(best.rows, np.argsort(-scores))
    np.testing.assert_allclose(best.scores, -np.sort(-scores), rtol=1e-4, atol=1e-6)


def test_groups_keep_the_best_and_the_order_of_equal_scores():
    """Few different scores in many rows: ties lie in many groups."""
    scores = np.random.default_rng(2).integers(0, 9, (4, 64 * 200)).astype("f")
    values, places = nearest._top(jax.numpy.array(scores), 70)
    expected, order = jax.lax.top_k(scores, 70)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(places, order)


def test_equal_scores_stay_in_order_and_few_documents_are_all_found():
    vector = np.ones((1, 2), np.float32)
    best = found(vector[None], [vector] * 3, 10)
    run = as_run(best, ["q"], "cab")
    assert run == {"q": {"c": 2, "a": 2, "b": 2}} and list(run["q"]) == list("cab")


def test_equal_scores_stay_in_order_where_widths_differ(monkeypatch):
    """The wide block is full, and searched, before the narrow one."""
    monkeypatch.setattr(nearest, "ROWS", 4)
    vector = np.ones((1, 2), np.float32)
    pair = np.repeat(vector, 2, axis=0)
    best = found(vector[None], [vector, pair, pair, pair], 1)
    assert best.rows.tolist() == [[0]]
    best = found(vector[None], [vector, pair, pair, pair], 6)
    assert best.rows.tolist() == [[0, 1, 2, 3, -1, -1]]


def test_devices_share_the_work(monkeypatch):
    """Eight devices, and numbers of rows that they cannot divide."""
    monkeypatch.setattr(nearest, "ROWS", 20)
    mesh = jax.sharding.Mesh(jax.devices(), ("data",))
    assert mesh.size == 8
    generator = np.random.default_rng(3)
    queries = generator.normal(size=(5, 1, 6)).astype("f")
    documents = generator.normal(size=(70, 3, 6)).astype("f")
    alone = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    one = found(queries, documents, 9, mesh=alone)
    all_devices = found(queries, documents, 9, mesh=mesh)
    np.testing.assert_array_equal(all_devices.rows, one.rows)
    blocks = Nearest(queries, 9, cosine=False, mesh=mesh)
    for rows in np.split(np.arange(70, dtype=np.int32), 7):
        blocks.add_all(documents[rows, :1], rows)
    expected = found(queries, documents[:, :1], 9, mesh=alone)
    np.testing.assert_array_equal(blocks.best().rows, expected.rows)
