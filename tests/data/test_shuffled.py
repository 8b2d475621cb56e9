"""Sections and segments in random order: what moves, and what stays together."""

import numpy as np
import pytest

from docjax.data.shuffled import Shuffled
from docjax.errors import UserError
from docjax.types import Segments


def document(*places: tuple[int, int]) -> Segments:
    """A segment of three tokens of its own for each section and number inside it."""
    count = len(places)
    tokens = np.arange(3 * count, dtype=np.int32)
    edges = np.array([[0, 5], [2, 7]])
    vectors = np.arange(count, dtype=np.float32)[:, None]
    offsets = np.arange(0, 3 * count + 1, 3)
    return Segments(tokens, offsets, np.array(places, np.int32), edges, vectors)


def pieces(segments: Segments) -> list[list[int]]:
    return [
        piece.tolist() for piece in np.split(segments.tokens, segments.offsets[1:-1])
    ]


def three_sections() -> Segments:
    """Segments of sections 0, 2 and 5, of which the user connected 0 with 5."""
    return document((0, 0), (0, 1), (2, 0), (5, 0), (5, 1))


def test_shuffled_sections_are_those_of_a_document_written_so():
    whole, orders = three_sections(), set()
    text = [tuple(piece) for piece in pieces(whole)]
    for seed in range(30):
        found = Shuffled("sections", seed)(whole)
        rows = [text.index(tuple(piece)) for piece in pieces(found)]
        assert found.vectors[:, 0].tolist() == rows
        assert found.sections.tolist() == sorted(found.sections)
        old = whole.sections[rows]  # of each segment
        assert found.places[:, 1].tolist() == whole.places[rows, 1].tolist()
        was = dict(zip(found.sections.tolist(), old.tolist(), strict=True))
        assert sorted(was) == sorted(was.values()) == [0, 2, 5]
        for number in was:  # a section stays in one piece, in its order
            own = np.flatnonzero(found.sections == number)
            assert np.diff([rows[i] for i in own]).tolist() == [1] * (len(own) - 1)
        (a, b), (c, d) = found.edges.tolist()
        assert (was[a], was[b], was[c], d) == (0, 5, 2, 7)
        orders.add(tuple(was[number] for number in sorted(was)))
    assert len(orders) == 6


def test_shuffled_segments_keep_their_places_and_vectors():
    whole, orders = three_sections(), set()
    for seed in range(20):
        found = Shuffled("segments", seed)(whole)
        rows = found.vectors[:, 0].astype(int).tolist()
        assert sorted(rows) == list(range(len(whole)))
        assert pieces(found) == [pieces(whole)[row] for row in rows]
        assert found.places.tolist() == whole.places[rows].tolist()
        assert found.edges is whole.edges
        orders.add(tuple(rows))
    assert len(orders) > 10


def test_an_order_depends_on_the_seed_and_the_document_alone():
    other = document((0, 0), (1, 0), (2, 0))
    order = Shuffled("segments", 7)
    order(other)
    alone = Shuffled("segments", 7)(three_sections())
    assert order(three_sections()).tokens.tolist() == alone.tokens.tolist()


def test_documents_of_one_piece_are_counted(caplog):
    one = document((7, 0), (7, 1))
    order = Shuffled("sections", 0)
    assert order(one).tokens.tolist() == one.tokens.tolist()
    with pytest.raises(UserError, match="none of 1 documents as two sections"):
        order.check()
    order(three_sections())
    with caplog.at_level("WARNING"):
        order.check()
    assert "1 of 2 documents have fewer than two sections" in caplog.text
