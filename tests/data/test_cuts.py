"""Spans of segments: nothing is lost, nothing is longer than the room."""

import numpy as np
import pytest

from docjax.data import cuts

CUTS = {
    "one_each": cuts.one_each,
    "joined": cuts.joined,
    "joined in sections": lambda *given: cuts.joined(*given, across_sections=False),
    "chunks": cuts.chunks,
}


def units(seed):
    generator = np.random.default_rng(seed)
    count = int(generator.integers(1, 12))
    lengths = generator.integers(0, 9, count).tolist()
    return lengths, np.sort(generator.integers(0, 4, count)).tolist()


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("room", [1, 4, 100])
def test_every_token_is_in_one_span_and_no_span_is_too_long(name, room):
    for seed in range(40):
        lengths, sections = units(seed)
        spans = list(CUTS[name](lengths, sections, room))
        covered = [token for start, end, _ in spans for token in range(start, end)]
        assert covered == list(range(sum(lengths)))
        assert all(end - start <= room for start, end, _ in spans)
        assert spans


def test_one_each_keeps_units_apart_and_splits_long_ones():
    assert list(cuts.one_each([2, 0, 5], [0, 0, 1], 3)) == [
        (0, 2, 0),
        (2, 2, 0),
        (2, 5, 1),
        (5, 7, 1),
    ]


def test_joined_takes_the_next_unit_while_it_fits():
    lengths, sections = [2, 1, 3, 4, 1], [0, 0, 1, 1, 2]
    assert list(cuts.joined(lengths, sections, 5)) == [(0, 3, 0), (3, 6, 1), (6, 11, 1)]
    apart = cuts.joined(lengths, sections, 100, across_sections=False)
    assert list(apart) == [(0, 3, 0), (3, 10, 1), (10, 11, 2)]


def test_a_joined_unit_that_is_too_long_is_cut_where_spans_are_full():
    """A text without an end of a sentence follows its title."""
    lengths, sections = [1, 7, 1], [0, 0, 1]
    assert list(cuts.joined(lengths, sections, 3)) == [(0, 3, 0), (3, 6, 0), (6, 9, 0)]
    in_pieces = [1, 3, 3, 1, 1], [0, 0, 0, 0, 1]  # as a corpus has it
    assert list(cuts.joined(*in_pieces, 3)) == [(0, 3, 0), (3, 6, 0), (6, 9, 0)]
    assert list(cuts.joined([2, 3, 2], [0, 0, 0], 3)) == [
        (0, 3, 0),
        (3, 6, 0),
        (6, 7, 0),
    ]
    other = cuts.joined([2, 3, 2], [0, 0, 1], 3)  # a section begins no rest
    assert list(other) == [(0, 3, 0), (3, 5, 0), (5, 7, 1)]
    apart = cuts.joined(lengths, [0, 1, 1], 3, across_sections=False)
    assert list(apart) == [(0, 1, 0), (1, 4, 1), (4, 7, 1), (7, 9, 1)]


def test_chunks_cut_each_section_without_regard_to_units():
    assert list(cuts.chunks([3, 4, 2], [0, 0, 1], 5)) == [
        (0, 5, 0),
        (5, 7, 0),
        (7, 9, 1),
    ]


@pytest.mark.parametrize("name", CUTS)
def test_units_without_tokens_give_an_empty_span(name):
    spans = list(CUTS[name]([0, 0], [0, 1], 4))
    assert spans[0][:2] == (0, 0) and all(start == end for start, end, _ in spans)
