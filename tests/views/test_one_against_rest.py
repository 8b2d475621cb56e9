"""One segment as a query: the first in half of the cases, otherwise any."""

import numpy as np
import pytest

from docjax.types import DOCUMENT, QUERY, Units
from docjax.views.one_against_rest import OneAgainstRest


def document(count: int) -> Units:
    """Units of one token each, numbered by it and by section."""
    numbers = np.arange(count, dtype=np.int32)
    return Units(numbers, np.arange(count + 1), numbers, np.zeros((0, 2), np.int32))


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("first", [0.5, 0.0, 1.0])
def test_the_first_comes_with_its_share_and_that_of_a_uniform_draw(count, first):
    views, generator, draws = (
        OneAgainstRest(first=first),
        np.random.default_rng(0),
        4000,
    )
    seen = np.zeros(count)
    for _ in range(draws):
        seen[views(document(count), generator)[0].tokens[0]] += 1
    share = np.full(count, (1 - first) / count)
    share[0] += first
    deviation = np.sqrt(draws * share * (1 - share))
    assert (abs(seen - draws * share) <= 5 * deviation).all()


def test_the_rest_is_all_others_in_order():
    generator = np.random.default_rng(1)
    for _ in range(20):
        one, rest = OneAgainstRest()(document(6), generator)
        assert len(one) == 1
        others = [n for n in range(6) if n != one.tokens[0]]
        assert rest.tokens.tolist() == rest.sections.tolist() == others


def test_the_one_is_read_as_a_query_and_two_segments_are_the_least():
    views = OneAgainstRest()
    assert (views.kinds, views.least_units) == ((QUERY, DOCUMENT), 2)
    one, rest = views(document(2), np.random.default_rng(2))
    assert len(one) == len(rest) == 1
