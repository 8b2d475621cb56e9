"""The re-rankers against their formulae, and their table on a small collection."""

import argparse
import json
from typing import Any

import flax.linen as nn
import jax
import numpy as np
import optax
import pytest
from flax.training.train_state import TrainState

from benchmarks import reranker_models, rerankers

pytestmark = pytest.mark.usefixtures("one_device")

LENGTHS = [(4, 7), (1, 2), (3, 0)]  # words of query and document


def texts(longest: int, which: int) -> tuple[np.ndarray, np.ndarray]:
    """The same random texts for any `longest`, with noise as padding, and the mask."""
    lengths = np.array(LENGTHS)[:, which]
    generator = np.random.default_rng(which)
    vectors = generator.normal(size=(len(LENGTHS), 30, 6)).astype(np.float32)
    mask = np.arange(30) < lengths[:, None]
    vectors[~mask] *= longest
    return vectors[:, :longest], mask[:, :longest]


def initial(model: nn.Module, *inputs: np.ndarray) -> Any:
    """Parameters of which none is zero."""
    params = jax.jit(model.init)(jax.random.key(0), *inputs)
    generator = np.random.default_rng(0)
    draw = lambda leaf: leaf + generator.uniform(0.1, 0.5, leaf.shape)
    return jax.tree.map(draw, params)


@pytest.mark.parametrize("system", rerankers.SYSTEMS)
def test_padding_does_not_change_a_score(system):
    model = rerankers.SYSTEMS[system]()
    short = *texts(4, 0), *texts(7, 1)
    params = initial(model, *short)
    score = jax.jit(model.apply)
    expected = score(params, *short)
    assert len(set(np.asarray(expected).tolist())) == len(LENGTHS)
    found = score(params, *texts(16, 0), *texts(30, 1))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("system", rerankers.SYSTEMS)
def test_padding_gets_no_gradient(system):
    model = rerankers.SYSTEMS[system]()
    query, query_mask = texts(6, 0)
    document, mask = texts(9, 1)
    params = initial(model, query, query_mask, document, mask)
    total = lambda q, d: model.apply(params, q, query_mask, d, mask).sum()
    gradients = jax.jit(jax.grad(total, argnums=(0, 1)))(query, document)
    for gradient, real in zip(gradients, (query_mask, mask), strict=True):
        assert np.isfinite(gradient).all()
        assert np.any(gradient[real]) and not np.any(gradient[~real])


def test_soft_counts_are_the_sums_of_kernels():
    generator = np.random.default_rng(0)
    similarities = generator.uniform(-1, 1, (2, 3, 5)).astype(np.float32)
    similarities[0, 0, 0] = 1
    query_mask = np.arange(3) < np.array([[3], [2]])
    document_mask = np.arange(5) < np.array([[4], [5]])
    found = reranker_models.soft_counts(similarities, query_mask, document_mask)
    means = np.array([-0.9, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
    widths = np.array([0.1] * 10 + [0.001])
    for pair, (words, others) in enumerate(((3, 4), (2, 5))):
        real = similarities[pair, :words, :others, None].astype(np.float64)
        counts = np.exp(-((real - means) ** 2) / 2 / widths**2).sum(1)
        expected = 0.01 * np.log(np.maximum(counts, 1e-10)).sum(0)
        np.testing.assert_allclose(found[pair], expected, rtol=1e-4)


@pytest.mark.parametrize("length", [1, 3, 10, 13])
def test_windows_share_the_words_of_a_text(length):
    """As adaptive pooling in torch does."""
    mask = np.arange(16)[None] < length
    found = np.asarray(reranker_models.windows(mask, 4))[0]
    for cell, inside in enumerate(found):
        first, after = cell * length // 4, -(-(cell + 1) * length // 4)
        assert np.flatnonzero(inside).tolist() == list(range(first, after))


def test_pooling_keeps_the_maximum_of_each_window():
    values = np.random.default_rng(0).uniform(size=(1, 5, 2)).astype(np.float32)
    inside = np.array([[[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]]], bool)
    found = reranker_models.pooled(values, 1, inside)[0]
    expected = [values[0, :2].max(0), values[0, 1:3].max(0), [0, 0]]
    np.testing.assert_array_equal(found, expected)


@pytest.fixture
def folder(tmp_path):
    """Ten queries of two words; of four documents with each word, one has both."""
    names = [f"name{i}" for i in range(10)]
    documents = {
        f"{name}-{other}": f"{name} {other} text"
        for i, name in enumerate(names)
        for other in ("first", "second", names[i - 1])
    }
    queries = {name: f"{name} second" for name in names}
    for file, rows in (("corpus", documents), ("queries", queries)):
        lines = [json.dumps({"_id": name, "text": rows[name]}) for name in rows]
        (tmp_path / f"{file}.jsonl").write_text("\n".join(lines))
    (tmp_path / "qrels").mkdir()
    lines = [f"{name}\t{name}-second\t1\n" for name in names]
    (tmp_path / "qrels/test.tsv").write_text("".join(lines))
    return tmp_path


def test_the_table_has_a_row_for_each_system(folder, capsys):
    flags = "--fold 0 --seeds 0 1 --epochs 1 --words 2 --top 5".split()
    rerankers.main(["--data", str(folder), *flags])
    notes, _, rows = capsys.readouterr().out.partition("\n\n")
    assert notes.splitlines() == [
        "30 of 30 documents are cut to 2 words, which leaves out 33.3% of all words.",
        "Queries: 6 train, 2 choose, 2 test.",
    ]
    head, _, *rows = rows.splitlines()
    assert head == "| system | p@5 | p@10 | p@20 | ndcg@10 |"
    assert rows[0] == "| BM25 | 0.200 | 0.100 | 0.050 | 1.000 |"
    assert rows[1].startswith("| MatchPyramid | 0.200, 0.200 | 0.100, 0.100 |")
    assert rows[2].startswith("| Conv-KNRM | 0.200, 0.200 | 0.100, 0.100 |")


DATA = dict(
    queries={"q": np.array([2], np.int32), "r": np.array([1], np.int32)},
    documents={name: np.array([row], np.int32) for row, name in enumerate("abc", 1)},
    table=np.eye(4, 6, dtype=np.float32),
    pairs=[("q", "b"), ("r", "a")],
    negatives={"q": ["a", "c"], "r": ["b", "c"]},
    candidates={"q": dict(c=3.0, b=2.0, a=1.0), "r": dict(a=2.0, b=1.0)},
    tuning={"q": {"b": 1}},
    test={"r": {"a": 1}},
)


def test_documents_are_in_the_order_of_their_scores():
    """Not in BM25's order, nor in that of their ids; padding is no document."""
    score = lambda params, queries, documents: -params * (1.5 - documents[:, 0]) ** 2
    state = TrainState.create(
        apply_fn=score, params=jax.numpy.float32(1), tx=optax.sgd(0.1)
    )
    found = rerankers.reranked(state, rerankers.Data(**DATA), ["r", "q"], 5)
    assert found == {"r": dict(b=-0.25, a=-0.25), "q": dict(b=-0.25, a=-0.25, c=-2.25)}
    assert [list(found[query]) for query in "rq"] == [["b", "a"], ["b", "a", "c"]]


@pytest.mark.parametrize("system", rerankers.SYSTEMS)
def test_training_puts_the_document_with_the_words_of_the_query_first(system):
    data = rerankers.Data(**DATA)
    model = rerankers.Reranker(rerankers.SYSTEMS[system](), data.table)
    orders = {}
    for epochs in (0, 100):
        flags = argparse.Namespace(epochs=epochs, top=3)
        found = [rerankers.trained(model, data, seed, flags)["r"] for seed in range(3)]
        orders[epochs] = [list(order) for order in found]
    assert ["b", "a"] in orders[0] and orders[100] == [["a", "b"]] * 3


def test_a_mistake_is_one_line(folder):
    with pytest.raises(SystemExit, match="rerankers: .* needs judgements train"):
        rerankers.main(["--data", str(folder)])
    with pytest.raises(SystemExit, match="--words and --top: give 1 or more"):
        rerankers.main(["--data", str(folder), "--fold", "0", "--words", "0"])
