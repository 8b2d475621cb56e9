"""What excerpts of documents say of a model."""

import numpy as np
import pytest

from docjax.recipe.half_scores import (
    by_deviation,
    confirmed,
    excerpts,
    reciprocal_ranks,
)
from docjax.types import Units


def units(*lengths: int) -> Units:
    offsets = np.cumsum([0, *lengths])
    return Units(
        np.arange(offsets[-1], dtype=np.int32),
        offsets,
        np.zeros(len(lengths), np.int32),
        np.zeros((0, 2), np.int32),
    )


@pytest.mark.parametrize("lengths", [(7,), (0,), (1,), (10, 10), (10, 10, 3)])
def test_excerpts_lie_in_the_middle_of_each_half(lengths):
    total = sum(lengths)
    first, second = excerpts(units(*lengths), 4)
    for half, begin, end in ((first, 0, total // 2), (second, total // 2, total)):
        assert len(half) == 1 and half.offsets.tolist() == [0, len(half.tokens)]
        assert len(half.tokens) == min(4, end - begin)
        if len(half.tokens):
            before, after = half.tokens[0] - begin, end - 1 - half.tokens[-1]
            assert 0 <= after - before <= 1
            assert (np.diff(half.tokens) == 1).all()


def test_the_rank_of_the_other_half_counts_the_documents_that_are_more_similar():
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(8 + 20, 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    both, others = vectors[:8], vectors[8:]
    for document, rank in enumerate(reciprocal_ranks(both, others)):
        expected = []
        for half, other in ((document, document + 4), (document + 4, document)):
            above = [x for x in others if both[half] @ x > both[half] @ both[other]]
            expected.append(1 / (1 + len(above)))
        np.testing.assert_allclose(rank, np.mean(expected))


def test_equal_texts_are_equal_whatever_the_order_of_sums():
    """Rounding makes the cosines of equal texts differ slightly on some machines."""
    generator = np.random.default_rng(0)
    noise = generator.uniform(-3e-7, 3e-7, (6, 30)).astype(np.float32)
    assert not by_deviation(1 - noise).any()
    scores = by_deviation(np.linspace(0.1, 0.9, 30, dtype=np.float32)[None] + noise)
    np.testing.assert_allclose(scores.mean(1), 0, atol=1e-6)
    np.testing.assert_allclose(scores.std(1), 1, rtol=1e-5)
    both = np.array([[1.0, 0], [1, 0]])
    others = np.array([[1 + 2e-7, 0], [1 - 2e-7, 0], [0, 1]])
    assert reciprocal_ranks(both, others).tolist() == [1 / 2]  # two halves above
    others[0, 0] += 1e-5
    assert reciprocal_ranks(both, others).tolist() == [1 / 2.5]


def test_vectors_that_have_collapsed_do_not_find_the_other_excerpt():
    around = np.random.default_rng(0).normal(scale=1e-7, size=(40 + 100, 8))
    vectors = np.ones(8) / 8**0.5 + around
    assert reciprocal_ranks(vectors[:40], vectors[40:]).mean() < 0.05


def test_the_most_similar_documents_are_confirmed():
    found = np.zeros((2, 30))
    found[0, :10] = found[1, 20:] = 1
    scores = np.zeros((2, 30))
    scores[0, :10], scores[1, 20:] = 2, 4
    assert confirmed(found, scores).tolist() == [3]
