"""Random halves: a partition in order, every half equally often."""

import itertools
from collections import Counter

import numpy as np
import pytest

from docjax.types import Units
from docjax.views.halves import Halves


def document(count: int) -> Units:
    """Segment i is i + 1 tokens of value i, in section i."""
    return Units(
        tokens=np.repeat(np.arange(count), np.arange(count) + 1).astype(np.int32),
        offsets=np.cumsum([0, *range(1, count + 1)]),
        sections=np.arange(count, dtype=np.int32),
        edges=np.array([[0, 1]], np.int32),
    )


def numbers(view: Units) -> tuple[int, ...]:
    return tuple(view.sections.tolist())


def test_every_half_comes_equally_often():
    views, generator = Halves(), np.random.default_rng(0)
    draws = 6000
    seen = Counter(numbers(views(document(4), generator)[0]) for _ in range(draws))
    assert set(seen) == set(itertools.combinations(range(4), 2))
    # Each count is binomial with p = 1/6: five deviations from it is beyond chance.
    deviation = (draws * 1 / 6 * 5 / 6) ** 0.5
    assert all(abs(count - draws / 6) < 5 * deviation for count in seen.values())


@pytest.mark.parametrize("count", [2, 3, 8, 51])
def test_the_halves_are_a_partition_in_order_of_sizes_that_differ_by_at_most_one(count):
    one, other = Halves()(document(count), np.random.default_rng(1))
    assert sorted(numbers(one) + numbers(other)) == list(range(count))
    assert list(numbers(one)) == sorted(numbers(one))
    assert list(numbers(other)) == sorted(numbers(other))
    assert (len(one), len(other)) == (count // 2, count - count // 2)


def test_a_segment_keeps_its_tokens_and_the_document_its_edges():
    for view in Halves()(document(9), np.random.default_rng(2)):
        assert view.edges.tolist() == [[0, 1]]
        for i, number in enumerate(numbers(view)):
            tokens = view.tokens[view.offsets[i] : view.offsets[i + 1]]
            assert tokens.tolist() == [number] * (number + 1)


def test_two_segments_are_the_least():
    assert Halves.least_units == 2
    one, other = Halves()(document(2), np.random.default_rng(3))
    assert len(one) == len(other) == 1
