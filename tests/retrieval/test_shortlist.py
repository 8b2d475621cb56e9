"""A search in two passes against one product, also where the fast pass errs."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from docjax.retrieval import nearest, shortlist
from docjax.retrieval.codes import coded


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(shortlist, "ROWS", 64)
    monkeypatch.setattr(shortlist, "CALLS", 3)


def expected(queries, vectors, top, cosine):
    if cosine:
        queries, vectors = (
            each / np.linalg.norm(each, axis=1, keepdims=True)
            for each in (queries, vectors)
        )
    scores = queries.astype(np.float64) @ vectors.T.astype(np.float64)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    return order, np.take_along_axis(scores, order, 1)


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("count", [1, 9, 1000])
def test_the_best_are_those_of_one_product(monkeypatch, cosine, count):
    monkeypatch.setattr(shortlist, "QUERIES", 3)
    generator = np.random.default_rng(0)
    queries, vectors = (generator.normal(size=(n, 16)).astype("f") for n in (5, count))
    found = shortlist.nearest(queries, vectors, 10, cosine=cosine)
    rows, scores = expected(queries, vectors, 10, cosine)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_allclose(found.scores, scores, atol=1e-4)


def test_what_bfloat16_cannot_tell_apart_is_searched_again(monkeypatch):
    """Scores that differ by less than bfloat16 knows, in other groups than the best."""
    generator = np.random.default_rng(1)
    base = generator.normal(size=16).astype("f")
    steps = generator.permutation(2000)
    vectors = base + 1e-5 * steps[:, None] * base
    again = []
    exact = shortlist._exact
    monkeypatch.setattr(
        shortlist, "_exact", lambda *given: again.append(len(given[0])) or exact(*given)
    )
    vectors = vectors.astype(np.float32)
    found = shortlist.nearest(base[None], vectors, 5, cosine=False)
    np.testing.assert_array_equal(found.rows[0], np.argsort(-steps)[:5])
    assert again == [1]
    far = generator.normal(size=(2000, 16)).astype("f")
    shortlist.nearest(base[None], far, 5, cosine=False)
    assert again == [1]  # these can be told apart


def test_the_search_in_float32_is_compiled_once():
    vectors = np.ones((150, 13), np.float32)  # cannot be told apart
    before = nearest._merge._cache_size()
    found = shortlist.nearest(vectors[:2], vectors, 9, cosine=False)
    np.testing.assert_array_equal(found.rows, [range(9)] * 2)
    assert nearest._merge._cache_size() == before + 1


def test_equal_vectors_are_in_their_order():
    vectors = np.ones((500, 8), np.float32)
    found = shortlist.nearest(vectors[:1], vectors, 20, cosine=True)
    assert found.rows.tolist() == [list(range(20))]


@pytest.mark.parametrize("kind", ["int8", "binary"])
def test_codes_find_nearly_the_same(kind):
    generator = np.random.default_rng(2)
    queries, vectors = (generator.normal(size=(n, 64)).astype("f") for n in (20, 3000))
    codes = coded(vectors[:, None], kind)
    found = shortlist.nearest(queries, vectors, 10, cosine=True, codes=codes, kind=kind)
    rows, _ = expected(queries, vectors, 10, True)
    recall = np.mean([len({*a} & {*b}) / 10 for a, b in zip(found.rows, rows)])
    assert recall > (0.99 if kind == "int8" else 0.8)


def test_devices_share_the_work():
    generator = np.random.default_rng(3)
    queries, vectors = (generator.normal(size=(n, 16)).astype("f") for n in (4, 700))
    found = shortlist.nearest(
        *(queries, vectors, 10),
        cosine=False,
        mesh=jax.sharding.Mesh(jax.devices(), ("data",)),
    )
    rows, _ = expected(queries, vectors, 10, False)
    np.testing.assert_array_equal(found.rows, rows)


@pytest.mark.parametrize("cosine", [False, True])
def test_the_rounding_is_measured_as_numpy_measures_it(monkeypatch, cosine):
    """XLA leaves out a conversion to bfloat16 and back, in some shapes only."""
    monkeypatch.setattr(shortlist, "ROWS", 4096)
    vectors = np.random.default_rng(5).normal(size=(5000, 384)).astype("f")
    change, longest = shortlist.measured(vectors, cosine=cosine)
    if cosine:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rounded = vectors.astype(jnp.bfloat16).astype("f")
    for found, array in ((change, vectors - rounded), (longest, vectors)):
        assert found == pytest.approx(np.linalg.norm(array, axis=1).max(), rel=2e-3)


def test_vectors_that_are_close_are_told_apart(monkeypatch):
    """Queries that bfloat16 holds exactly: the rounding of the vectors alone errs."""
    monkeypatch.setattr(shortlist, "ROWS", 4096)
    generator = np.random.default_rng(6)
    base = generator.normal(size=64)
    vectors, queries = (
        (base + scale * generator.normal(size=(count, 64))).astype("f")
        for count, scale in ((4000, 0.01), (200, 0.1))
    )
    queries = queries.astype(jnp.bfloat16).astype("f")
    found = shortlist.nearest(queries, vectors, 10, cosine=False)
    exact = queries.astype("d") @ vectors.T.astype("d")
    tenth = -np.sort(-exact, axis=1)[:, 9]
    worst = np.take_along_axis(exact, found.rows, 1).min(1)
    assert (worst > tenth - 1e-4).all()


def test_the_error_of_the_fast_pass_has_the_bound_that_it_says():
    """Numbers that bfloat16 rounds by all that it may."""
    generator = np.random.default_rng(4)
    signs = generator.choice([-1, 1], (300, 16))
    vectors = (signs * (1 + 2**-8)).astype(np.float32)
    queries = vectors[:3] * np.float32(1 + 2**-9)
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    groups = shortlist._groups(queries, vectors, 4, False, mesh)
    error = shortlist._error(queries, shortlist.measured(vectors, cosine=False))
    highest = (queries @ vectors.T)[:, :296].reshape(3, -1, 8).max(-1)
    for row in range(3):
        left = np.setdiff1d(np.arange(37), groups.numbers[row])
        assert (highest[row][left] <= groups.lowest[row] + error[row]).all()
        best = highest[row][groups.numbers[row][groups.numbers[row] < 37]]
        assert (best >= groups.lowest[row] - error[row]).all()


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_the_fast_pass_is_lowered_for_pods_without_collectives(platform):
    """Each device multiplies its own vectors; only the choice of groups gathers."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    shape = lambda dtype, sizes, *axes: jax.ShapeDtypeStruct(
        sizes, dtype, sharding=NamedSharding(mesh, P(*axes))
    )
    vectors = shape(jnp.float32, (512, 64), "data")
    queries, count = shape(jnp.bfloat16, (64, 6)), shape(jnp.int32, ())
    traced = shortlist._highest.trace(vectors, queries, count, True)
    assert traced.lower(lowering_platforms=(platform,)).as_text()
    compiled = traced.lower().compile().as_text()
    assert not re.search("all-(gather|reduce|to)|reduce-scatter|-permute", compiled)
