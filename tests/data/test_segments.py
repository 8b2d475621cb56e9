"""Segments: special tokens around the right tokens, places, vectors."""

import numpy as np
import pytest

from docjax.data.segments import Chunks, Joined, OneEach, segments
from docjax.types import Frame, Units

FRAME = Frame(np.array([1], np.int32), np.array([2, 3], np.int32), 8)  # room for 5


def units(*lengths, sections=None):
    """Units whose tokens count up from 10."""
    count = sum(lengths)
    if sections is None:
        sections = [0] * len(lengths)
    return Units(
        np.arange(10, 10 + count, dtype=np.int32),
        np.cumsum([0, *lengths]),
        np.array(sections, np.int32),
        np.array([[0, 1]], np.int32),
    )


def pieces(found):
    return [
        found.tokens[a:b].tolist() for a, b in zip(found.offsets, found.offsets[1:])
    ]


@pytest.mark.parametrize("cutter", [OneEach(), Joined(), Chunks()])
def test_special_tokens_surround_the_text_of_each_segment(cutter):
    found = segments(units(2, 7, 3, 1, sections=[0, 0, 1, 1]), cutter, FRAME)
    text = []
    for piece in pieces(found):
        assert piece[0] == 1 and piece[-2:] == [2, 3] and len(piece) <= FRAME.limit
        text += piece[1:-2]
    assert text == list(range(10, 23))
    assert found.edges.tolist() == [[0, 1]]


def test_a_place_is_the_section_and_the_number_inside_it():
    found = segments(units(7, 3, 12, sections=[0, 0, 2]), Chunks(), FRAME)
    assert found.places.tolist() == [[0, 0], [0, 1], [2, 0], [2, 1], [2, 2]]
    assert found.places.dtype == np.int32
    assert found.sections.tolist() == [0, 0, 2, 2, 2]


def test_without_special_tokens_units_that_fit_stay_what_they_are():
    frame = Frame(np.zeros(0, np.int32), np.zeros(0, np.int32), 5)
    own = units(2, 0, 3)
    found = segments(own, OneEach(), frame)
    assert found.tokens.tolist() == own.tokens.tolist()
    assert found.offsets.tolist() == own.offsets.tolist()


def test_vectors_stay_with_units_that_are_one_segment_each():
    own = units(2, 3)
    vectors = np.ones((2, 4), np.float32)
    own = Units(own.tokens, own.offsets, own.sections, own.edges, vectors=vectors)
    assert segments(own, OneEach(), FRAME).vectors is vectors
    assert segments(own, Joined(), FRAME).vectors is None


def test_the_first_segments_are_a_prefix():
    found = segments(units(2, 3, 4), OneEach(), FRAME)
    assert pieces(found.first(2)) == pieces(found)[:2]
    assert found.first(2).places.tolist() == [[0, 0], [0, 1]]
    assert found.first(3) is found and found.first(None) is found
