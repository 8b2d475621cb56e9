"""The nearest vectors against one product of all with all."""

import numpy as np
import pytest

from docjax.retrieval import index


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("block", [1, 7, 1000])
def test_the_nearest_are_those_of_one_product(monkeypatch, cosine, block):
    monkeypatch.setattr(index, "BLOCK", block)
    generator = np.random.default_rng(0)
    queries, vectors = (generator.normal(size=(n, 5)).astype("f") for n in (3, 50))
    pairs = ((f"d{i}", vector) for i, vector in enumerate(vectors))
    found = index.nearest(["x", "y", "z"], queries, pairs, 4, cosine=cosine)
    if cosine:
        queries, vectors = (
            v / np.linalg.norm(v, axis=1)[:, None] for v in (queries, vectors)
        )
    scores = queries @ vectors.T
    for row, (name, best) in enumerate(found.items()):
        order = np.argsort(-scores[row])[:4]
        assert name == "xyz"[row] and list(best) == [f"d{i}" for i in order]
        np.testing.assert_allclose(list(best.values()), scores[row, order], rtol=1e-5)


def test_equal_scores_stay_in_order_and_few_documents_are_all_found():
    vector = np.ones(2, np.float32)
    pairs = [(name, vector) for name in "cab"]
    found = index.nearest(["q"], vector[None], pairs, 10, cosine=False)
    assert found == {"q": {"c": 2, "a": 2, "b": 2}} and list(found["q"]) == list("cab")
