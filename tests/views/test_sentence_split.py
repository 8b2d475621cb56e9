"""The coin-flip split: disjoint, complete, in order, binomial, no side empty."""

import math
from collections import Counter

import numpy as np
import pytest

from docjax.types import Units
from docjax.views.sentence_split import SentenceSplit


def document(count: int) -> Units:
    numbers = np.arange(count, dtype=np.int32)
    return Units(numbers, np.arange(count + 1), numbers, np.zeros((0, 2), np.int32))


@pytest.mark.parametrize("count", [2, 3, 50])
def test_the_views_are_disjoint_complete_in_order_and_never_empty(count):
    generator = np.random.default_rng(0)
    for _ in range(200):
        views = SentenceSplit()(document(count), generator)
        own = [view.tokens.tolist() for view in views]
        assert all(own) and all(side == sorted(side) for side in own)
        assert sorted(own[0] + own[1]) == list(range(count))


def test_the_sizes_are_binomial_given_that_no_side_is_empty():
    generator, count, draws = np.random.default_rng(1), 5, 6000
    sizes = Counter(
        len(SentenceSplit()(document(count), generator)[0]) for _ in range(draws)
    )
    for size in range(1, count):
        share = math.comb(count, size) / (2**count - 2)
        deviation = (draws * share * (1 - share)) ** 0.5
        assert abs(sizes[size] - draws * share) < 5 * deviation
    assert set(sizes) == {1, 2, 3, 4}
