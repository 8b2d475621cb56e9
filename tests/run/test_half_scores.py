"""What halves of documents say of a model."""

import numpy as np
import pytest

from docjax.run.half_scores import confirmed, halves, reciprocal_ranks
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
def test_few_units_are_cut_in_the_middle_into_units_that_fit(lengths):
    first, second = halves(units(*lengths), 10)
    whole = np.concatenate([first.tokens, second.tokens])
    assert whole.tolist() == list(range(sum(lengths)))
    for half in (first, second):
        assert half.offsets[0] == 0 and half.offsets[-1] == len(half.tokens)
        assert len(half) == len(half.lengths) and max(half.lengths) <= 10
    assert 0 <= len(second.tokens) - len(first.tokens) <= 1


def test_of_many_units_each_half_has_every_other_unit():
    first, second = halves(units(2, 3, 4, 5), 10)
    assert first.lengths.tolist() == [2, 4]
    assert second.lengths.tolist() == [3, 5]


def test_the_rank_of_the_other_half_counts_the_documents_that_are_more_similar():
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(8 + 20, 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    both, others = vectors[:8], vectors[8:]
    for document, found in enumerate(reciprocal_ranks(both, others)):
        expected = []
        for half, other in ((document, document + 4), (document + 4, document)):
            above = [x for x in others if both[half] @ x > both[half] @ both[other]]
            expected.append(1 / (1 + len(above)))
        np.testing.assert_allclose(found, np.mean(expected))


def test_the_most_similar_documents_are_confirmed():
    found = np.zeros((2, 30))
    found[0, :10] = found[1, 20:] = 1
    scores = np.zeros((2, 30))
    scores[0, :10], scores[1, 20:] = 2, 4
    assert confirmed(found, scores).tolist() == [3]
