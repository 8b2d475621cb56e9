"""Segments: special tokens around the right tokens, places, vectors."""

import dataclasses

import numpy as np
import pytest

from docjax.data.segments import Chunks, Joined, OneEach, segments, shuffled
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


def three_sections():
    """Segments of sections 0, 2 and 5, of which the user connected 0 with 5."""
    own = units(7, 3, 2, 6, sections=[0, 2, 2, 5])
    vectors = np.arange(4, dtype=np.float32)[:, None]
    own = dataclasses.replace(own, edges=np.array([[0, 5], [2, 3]]), vectors=vectors)
    return segments(own, Chunks(), FRAME)


def test_shuffled_sections_are_those_of_a_document_written_so():
    whole, orders = three_sections(), set()
    in_section = lambda found, number: [
        pieces(found)[i] for i in np.flatnonzero(found.sections == number)
    ]
    texts = {number: in_section(whole, number) for number in (0, 2, 5)}
    for seed in range(20):
        found = shuffled(whole, "sections", np.random.default_rng(seed))
        assert sorted(found.sections) == found.sections.tolist()
        is_now = {
            new: next(old for old in texts if texts[old] == in_section(found, new))
            for new in (0, 2, 5)
        }
        assert sorted(is_now.values()) == [0, 2, 5]
        orders.add(tuple(is_now.values()))
        (a, b), (c, d) = found.edges.tolist()
        assert {is_now[a], is_now[b]} == {0, 5} and is_now[c] == 2 and d == 3
        for number in (0, 2, 5):
            rows = np.flatnonzero(found.sections == number)
            assert found.places[rows, 1].tolist() == list(range(len(rows)))
    assert len(orders) == 6


def test_shuffled_segments_keep_their_places_and_vectors():
    whole, orders = three_sections(), set()
    vectors = np.arange(len(whole), dtype=np.float32)[:, None]
    whole = dataclasses.replace(whole, vectors=vectors)
    for seed in range(20):
        found = shuffled(whole, "segments", np.random.default_rng(seed))
        rows = found.vectors[:, 0].astype(int).tolist()
        assert sorted(rows) == list(range(len(whole)))
        assert pieces(found) == [pieces(whole)[row] for row in rows]
        assert found.places.tolist() == whole.places[rows].tolist()
        assert found.edges is whole.edges
        orders.add(tuple(rows))
    assert len(orders) > 10
