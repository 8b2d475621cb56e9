"""Two sections, two halves, or the one unit that there is."""

from collections import Counter

import numpy as np
import pytest

from docjax.errors import UserError
from docjax.types import Units
from docjax.views.two_parts import TwoParts


def document(*units: tuple[int, int]) -> Units:
    """Units of these (section, tokens); unit i is tokens of value i."""
    sections, lengths = map(np.array, zip(*units))
    return Units(
        tokens=np.repeat(np.arange(len(units)), lengths).astype(np.int32),
        offsets=np.cumsum([0, *lengths]),
        sections=sections.astype(np.int32),
        edges=np.zeros((0, 2), np.int32),
    )


def numbers(view: Units) -> tuple[int, ...]:
    return tuple(np.unique(view.tokens).tolist())


def test_two_long_sections_are_drawn_equally_often():
    units = document((0, 9), (0, 3), (1, 12), (2, 5), (3, 6), (3, 6))
    views, generator = TwoParts(tokens=12), np.random.default_rng(0)
    seen = Counter(tuple(map(numbers, views(units, generator))) for _ in range(600))
    parts = {(0, 1), (2,), (4, 5)}  # section 2 is short
    assert set(seen) == {(a, b) for a in parts for b in parts if a != b}
    assert all(60 < count < 140 for count in seen.values())


@pytest.mark.parametrize("sections", [(0, 0, 0, 0, 0), (0, 1, 1, 2, 3)])
def test_without_two_long_sections_the_units_are_halved(sections):
    units = document(*[(section, 5) for section in sections])
    one, other = TwoParts(tokens=12)(units, np.random.default_rng(1))
    assert (len(one), len(other)) == (2, 3)
    assert sorted(numbers(one) + numbers(other)) == [0, 1, 2, 3, 4]


def test_one_unit_is_both_views():
    views = TwoParts(tokens=12)
    assert views.least_units == 1 and views.halve_from == 12
    one, other = views(document((0, 5)), np.random.default_rng(2))
    assert numbers(one) == numbers(other) == (0,)


def test_too_few_tokens_are_refused():
    with pytest.raises(UserError, match="views.tokens 1: give at least 2"):
        TwoParts(tokens=1)
