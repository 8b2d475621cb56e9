"""Links between documents, read off their vectors."""

import dataclasses
import logging

import numpy as np
import pytest

from docjax.errors import UserError
from docjax.tasks.links import Links, links, pair_features
from docjax.tasks.probe import Probe
from docjax.types import Embeddings

SMALL = Probe(width=32, learning_rate=0.01, epochs=10)
HEADER = "split\tsource\ttarget\tlabel\n"


@pytest.fixture(scope="module")
def data(given, document):
    """Documents of two kinds, a number each."""
    generator = np.random.default_rng(0)
    signs = np.repeat([-1.0, 1.0], 20)
    vectors = np.stack([signs, np.ones(40)], axis=1)
    vectors += 0.1 * generator.normal(size=vectors.shape)
    names = [f"{'n' if sign < 0 else 'p'}{i}" for i, sign in enumerate(signs)]
    return given([document(name) for name in names], vectors.astype(np.float32))


@pytest.fixture
def table(data, tmp_path):
    """Documents of one kind have links."""

    def write(*splits: str) -> str:
        generator, lines = np.random.default_rng(1), []
        names = list(data.by_id)
        for split in splits:
            for _ in range(200):
                a, b = generator.choice(names, 2, replace=False)
                lines.append(f"{split}\t{a}\t{b}\t{int(a[0] == b[0])}\n")
        path = tmp_path / "pairs.tsv"
        path.write_text(HEADER + "".join(lines))
        return str(path)

    return write


@pytest.mark.parametrize("features", ["concat", "concat_prod_diff"])
def test_links_are_read_off_both_vectors(data, table, features):
    task = Links(table("train", "test"), features, SMALL)
    task.check(data, "test")
    assert task(data, "test") == {"accuracy": 1.0, "f1": 1.0}


def test_vectors_that_are_not_finite_are_refused():
    vectors = np.array([[np.nan, 1], [1, 2], [2, 1], [0, 1]], np.float32)
    pairs = Embeddings(vectors, ["1", "0", "1", "0"])
    with pytest.raises(UserError, match="finite"):
        links(pairs, pairs, SMALL)


def test_features_stand_side_by_side():
    a, b = np.array([[1.0, 2.0]], "f"), np.array([[3.0, 5.0]], "f")
    assert pair_features(a, b, "concat").tolist() == [[1, 2, 3, 5]]
    expected = [[1, 2, 3, 5, 3, 10, -2, -3]]
    assert pair_features(a, b, "concat_prod_diff").tolist() == expected


def test_without_a_hidden_layer_only_the_product_tells_links(data, table):
    linear = dataclasses.replace(SMALL, hidden_layers=0)
    path = table("train", "test")
    concat, product = (
        Links(path, features, linear)(data, "test")["accuracy"]
        for features in ("concat", "concat_prod_diff")
    )
    assert concat < 0.75 and product > 0.95


def test_a_table_without_test_pairs_is_scored_on_what_is_held_out(data, table, caplog):
    task = Links(table("train", "validation"), classifier=SMALL)
    with caplog.at_level(logging.WARNING):
        task.check(data, "test")
    assert "no test pairs: those of 'validation' are scored" in caplog.text
    assert task(data, "test") == task(data, "validation")
    assert task(data, "test")["accuracy"] == 1


def test_mistakes_are_one_line(data, table, tmp_path):
    unknown = tmp_path / "unknown.tsv"
    lines = "train\tx\tp30\t1\ntrain\tn1\tp30\t0\ntest\tn2\tp30\t1\ntest\tn1\tn2\t0\n"
    unknown.write_text(HEADER + lines)
    with pytest.raises(UserError, match="1 of 4 documents .* 'x' is the first"):
        Links(str(unknown)).check(data, "test")
    unknown.write_text(HEADER + lines.replace("\t0\n", "\t1\n"))
    with pytest.raises(UserError, match="2 train pairs, 2 of them similar"):
        Links(str(unknown)).check(data, "test")
    with pytest.raises(
        UserError, match="test or dev .* and train are needed; there are train"
    ):
        Links(table("train")).check(data, "test")
    with pytest.raises(UserError, match="features='sum' is not one of concat"):
        Links("pairs.tsv", "sum")
