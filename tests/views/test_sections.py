"""Sections as views: consecutive, complete, about equally long."""

import itertools

import numpy as np
import pytest

from docjax.errors import UserError
from docjax.types import Units
from docjax.views.sections import Sections, balanced


def document(lengths, sections) -> Units:
    offsets = np.cumsum([0, *lengths])
    tokens = np.arange(offsets[-1], dtype=np.int32)
    edges = np.array([[0, 1]], np.int32)
    return Units(tokens, offsets, np.array(sections, np.int32), edges)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_the_views_are_the_document_in_order(count):
    generator = np.random.default_rng(0)
    for _ in range(50):
        size = int(generator.integers(count, 20))
        lengths = generator.integers(1, 30, size)
        own = document(lengths, np.sort(generator.integers(0, 6, size)))
        views = Sections(count)(own, generator)
        assert np.concatenate([v.tokens for v in views]).tolist() == own.tokens.tolist()
        assert [set(v.sections.tolist()) for v in views] == [{i} for i in range(count)]
        assert all(len(view) for view in views)


def test_a_view_begins_where_a_section_begins():
    own = document([5, 5, 5, 20, 5], [0, 0, 1, 2, 2])
    first, second = Sections(2)(own, np.random.default_rng(0))
    assert (len(first.tokens), len(second.tokens)) == (15, 25)


def test_too_few_sections_are_cut_between_units():
    first, second = Sections(2)(
        document([4, 4, 4], [7, 7, 7]), np.random.default_rng(0)
    )
    assert sorted([len(first.tokens), len(second.tokens)]) == [4, 8]


def test_balanced_is_nearest_to_equal_sizes_of_two_groups():
    generator = np.random.default_rng(2)
    for _ in range(30):
        lengths = generator.integers(1, 50, 9)
        starts, total = np.cumsum(lengths) - lengths, int(lengths.sum())
        chosen = balanced(starts, total, 2)
        best = min(abs(starts[cut] - total / 2) for cut in range(1, 9))
        assert abs(starts[chosen[1]] - total / 2) == best
        for groups in (3, 5):
            cuts = balanced(starts, total, groups)
            assert cuts[0] == 0 and len(cuts) == groups
            assert all(a < b for a, b in itertools.pairwise(cuts))


def test_a_number_of_sections_out_of_range_is_refused():
    with pytest.raises(UserError, match="count 6.* 2 to 5"):
        Sections(6)
