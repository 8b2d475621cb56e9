"""Segments of many views in micro-batches of similar length, and the segments' rows.

The segments are sorted by length and cut into micro-batches of few widths, so that a
step computes little padding and JAX compiles few shapes. Training and inference share
this code.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from docjax.data import graphs
from docjax.types import GraphBuilder, Graphs, Microbatch, Segments

SHAPES = 16  # most widths of a run
FEW_SHAPES = 6  # most widths where compiling another costs more than its padding
LARGE = 200  # nodes of a graph that may be read as edges
SPARSE = 0.05  # share of all pairs that such a graph connects at most

Height = Callable[[int, int, int], int]


class Group(NamedTuple):
    """The numbers of the segments in one micro-batch, and its shape."""

    chosen: Int[np.ndarray, " _"]
    rows: int
    width: int


def bucket_widths(
    lengths: Int[np.ndarray, " n"], shapes: int = SHAPES, multiple: int = 8
) -> tuple[int, ...]:
    """At most `shapes` widths that cover `lengths` with the least padding.

    Exact, by dynamic programming over the distinct lengths rounded up to `multiple`.
    The last width is the longest length itself: a position table may end there.
    """
    rounded = -(-np.maximum(lengths, 1) // multiple) * multiple
    widths, counts = np.unique(rounded, return_counts=True)
    widths[-1] = max(1, lengths.max())
    below = np.concatenate([[0], np.cumsum(counts)])
    cost = np.where(np.arange(len(widths) + 1) == 0, 0.0, np.inf)
    choices = []
    for _ in range(min(shapes, len(widths))):
        # Lengths below[i]..below[j] go into one bucket of width widths[j - 1].
        bucket = (below[None, 1:] - below[:, None]) * widths[None, :]
        bucket = np.where(bucket < 0, np.inf, bucket.astype(float))
        total = cost[:, None] + bucket
        choices.append(total.argmin(axis=0))
        cost = np.concatenate([[np.inf], total.min(axis=0)])
    return _chosen_widths(widths, choices)


def _chosen_widths(widths: np.ndarray, choices: Sequence[np.ndarray]) -> tuple:
    chosen, end = [], len(widths)
    for choice in reversed(choices):
        if end == 0:
            break
        chosen.append(int(widths[end - 1]))
        end = int(choice[end - 1])
    return tuple(reversed(chosen))


def groups(
    lengths: Int[np.ndarray, " n"], height: Height, widths: Sequence[int]
) -> list[Group]:
    """Puts segments of these lengths into micro-batches, longest first.

    `height(number, width, remaining)` is the number of rows of micro-batch `number`.
    The last micro-batch may have unused rows. No length may be above the last width.
    """
    order = np.argsort(-lengths, kind="stable")
    grouped, start = [], 0
    while start < len(order):
        longest = lengths[order[start]]
        width = next(width for width in widths if width >= longest)
        rows = height(len(grouped), width, len(order) - start)
        grouped.append(Group(order[start : start + rows], rows, width))
        start += rows
    return grouped


def filled(group: Group, pieces: Sequence[np.ndarray], fill: int = 0) -> np.ndarray:
    """The pieces of a group's segments as rows [rows width], padded with `fill`."""
    array = np.full((group.rows, group.width), fill, np.int32)
    for row, number in enumerate(group.chosen):
        array[row, : len(pieces[number])] = pieces[number]
    return array


def microbatches(
    views: Sequence[Segments], height: Height, widths: Sequence[int]
) -> tuple[list[Microbatch], list[Group]]:
    """The segments of all views in micro-batches, and their groups (`groups`)."""
    pieces = split(views)
    lengths = np.array([len(piece) for piece in pieces], np.int32)
    places = np.concatenate([view.places for view in views])
    grouped = groups(lengths, height, widths)
    return [microbatch(group, pieces, places) for group in grouped], grouped


def split(views: Sequence[Segments]) -> list[np.ndarray]:
    """The tokens of each segment of all views."""
    return [
        view.tokens[view.offsets[i] : view.offsets[i + 1]]
        for view in views
        for i in range(len(view))
    ]


def microbatch(
    group: Group, pieces: Sequence[np.ndarray], places: Int[np.ndarray, "n 2"]
) -> Microbatch:
    """The micro-batch of a group; unused rows have length 0."""
    real, at = np.zeros(group.rows, np.int32), np.zeros((group.rows, 2), np.int32)
    real[: len(group.chosen)] = [len(pieces[number]) for number in group.chosen]
    at[: len(group.chosen)] = places[group.chosen]
    return Microbatch(filled(group, pieces), real, at)


def rows_of(grouped: Sequence[Group], count: int) -> Int[np.ndarray, " n"]:
    """The row of each of `count` segments in the micro-batches laid end to end."""
    rows, start = np.empty(count, np.int64), 0
    for group in grouped:
        rows[group.chosen] = start + np.arange(len(group.chosen))
        start += group.rows
    return rows


def device_graphs(
    views: Sequence[Segments],
    graph: GraphBuilder | None,
    height: int,
    sparse: bool | None,
) -> Graphs:
    """Adjacency matrices [b 1+height 1+height], or edges [b e 2] if `sparse`.

    `sparse` None: edges for graphs of more than LARGE nodes of which fewer than SPARSE
    of all pairs are connected, where segment sums are faster than dense attention.
    """
    if graph is None:
        return Graphs()
    built = [graph(len(view), view.sections, view.edges) for view in views]
    most = round_up(max(len(g.senders) for g in built))
    if sparse is None:
        sparse = 1 + height > LARGE and most < SPARSE * (1 + height) ** 2
    if sparse:
        return Graphs(edges=np.stack([graphs.edge_list(g, most) for g in built]))
    return Graphs(np.stack([graphs.adjacency(g, 1 + height) for g in built]))


def round_up(number: int) -> int:
    """The next number of the form 1..8 or (4..7) * 2^j: few shapes, little waste."""
    step = 1 << max(0, int(number).bit_length() - 3)
    return max(1, -(-number // step) * step)
