"""Micro-batches: every segment once, little padding, few shapes."""

import itertools

import numpy as np
import pytest

from docjax.data import graphs
from docjax.data import microbatches as batches
from docjax.types import Segments

# Widths.


def computed(lengths, widths) -> int:
    return sum(min(w for w in widths if w >= length) for length in lengths)


@pytest.mark.parametrize("shapes", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_no_other_widths_pad_less(seed, shapes):
    lengths = np.random.default_rng(seed).integers(1, 60, 30)
    found = batches.bucket_widths(lengths, shapes, multiple=8)
    longest = int(lengths.max())
    candidates = {int(w) for w in -(-lengths // 8) * 8 if w < longest}
    least = min(
        computed(lengths, (*chosen, longest))
        for size in range(shapes)
        for chosen in itertools.combinations(sorted(candidates), size)
    )
    assert computed(lengths, found) == least
    assert len(found) <= shapes
    assert list(found) == sorted(set(found))


def test_the_last_width_is_the_longest_length_though_it_is_no_multiple():
    assert batches.bucket_widths(np.array([3, 9, 21])) == (8, 16, 21)
    assert batches.bucket_widths(np.array([0])) == (1,)


def test_there_are_at_most_sixteen_widths():
    lengths = np.arange(1, 513)
    assert len(batches.bucket_widths(lengths)) == 16
    assert max(batches.bucket_widths(lengths)) == 512


# Micro-batches and batches.


def test_every_segment_lies_at_its_place_once_and_the_rest_is_empty(documents):
    some = documents(9)
    widths = (8, 16, 24, 40)
    micro, grouped = batches.microbatches(some, lambda *_: 5, widths)
    place = batches.rows_of(grouped, sum(map(len, some)))
    rows = [
        m.tokens[i, : m.lengths[i]].tolist()
        for m in micro
        for i in range(len(m.tokens))
    ]
    pieces = [
        one.tokens[a:b].tolist()
        for one in some
        for a, b in itertools.pairwise(one.offsets)
    ]
    assert [rows[at] for at in place] == pieces
    assert len(set(place.tolist())) == len(pieces)
    assert sum(len(row) > 0 for row in rows) == len(pieces)
    for m in micro:
        assert m.tokens.shape == (5, m.tokens.shape[1]) and m.tokens.shape[1] in widths
        assert m.places.shape == (5, 2) and not m.places[m.lengths == 0].any()
        behind = np.arange(m.tokens.shape[1]) >= m.lengths[:, None]
        assert (m.tokens[behind] == 0).all()


def test_micro_batches_come_longest_first_at_the_narrowest_width(documents):
    widths = (8, 16, 24, 40)
    micro, _ = batches.microbatches(documents(9), lambda *_: 5, widths)
    longest = [int(m.lengths.max()) for m in micro]
    assert longest == sorted(longest, reverse=True)
    for m, length in zip(micro, longest):
        assert m.tokens.shape[1] == min(w for w in widths if w >= length)
    assert all((m.lengths > 0).all() for m in micro[:-1])


def test_the_height_may_follow_from_number_width_and_rest(document):
    asked = []

    def height(number: int, width: int, remaining: int) -> int:
        asked.append((number, width, remaining))
        return 2 if width == 16 else 4

    micro, _ = batches.microbatches([document(3, 9, 5, 10, 2, 12, 1)], height, (8, 16))
    assert asked == [(0, 16, 7), (1, 16, 5), (2, 8, 3)]
    assert [m.tokens.shape for m in micro] == [(2, 16), (2, 16), (4, 8)]


def test_round_up_gives_few_sizes_that_waste_less_than_a_quarter():
    sizes = [batches.round_up(n) for n in range(1, 2000)]
    assert all(n <= size < 1.25 * n + 1 for n, size in enumerate(sizes, 1))
    assert sizes[:10] == [1, 2, 3, 4, 5, 6, 7, 8, 10, 10]
    assert all(size == batches.round_up(size) for size in sizes)
    assert len(set(sizes)) < 45
    assert batches.round_up(0) == 1


def test_places_stay_with_their_segments(documents):
    some = documents(9)
    micro, grouped = batches.microbatches(some, lambda *_: 5, (8, 16, 24, 40))
    place = batches.rows_of(grouped, sum(map(len, some)))
    found = np.concatenate([m.places for m in micro])[place]
    expected = np.concatenate([one.places for one in some])
    np.testing.assert_array_equal(found, expected)


# Graphs.


def view(sections: int) -> Segments:
    """A document of `sections` sections of one segment each, without tokens."""
    places = np.stack([np.arange(sections), np.zeros(sections)], 1).astype(np.int32)
    nothing = np.zeros((0, 2), np.int32)
    return Segments(np.zeros(0, np.int32), np.zeros(sections + 1), places, nothing)


@pytest.mark.parametrize(
    "build, sections, as_edges",
    [
        (graphs.user_edges, 250, True),  # large, and few pairs are connected
        (graphs.user_edges, 150, False),  # small
        (graphs.full, 250, False),  # all pairs are connected
    ],
)
def test_the_size_of_graphs_chooses_how_they_are_read(build, sections, as_edges):
    views = [view(sections), view(9)]
    chosen = batches.device_graphs(views, build, sections, None)
    assert (chosen.edges is not None) == as_edges
    assert (chosen.adjacency is None) == as_edges
    for forced in (True, False):
        other = batches.device_graphs(views, build, sections, forced)
        assert (other.edges is not None) == forced
