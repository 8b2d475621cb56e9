"""Packs the views of a step's examples into one batch."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from docjax.data.masking import Masking
from docjax.data.microbatches import device_graphs, microbatches, round_up, rows_of
from docjax.types import (
    Batch,
    GraphBuilder,
    Graphs,
    Masked,
    Microbatch,
    Segments,
    Targets,
)


class Layout(NamedTuple):
    """How every batch of a run is laid out."""

    rows: int  # of a micro-batch
    widths: tuple[int, ...]  # of micro-batches, ascending
    limit: int  # of a segment: its width if a view adds words beyond `widths`
    graph: GraphBuilder | None = None
    sparse: bool | None = None  # graphs as edges, not as matrices; None: by their size
    towers: tuple[int, ...] = ()  # the encoder that reads each view; empty: only one


class _Read(NamedTuple):
    """The micro-batches of all views, and the row of each of their segments."""

    microbatches: list[Microbatch]
    towers: list[int]
    masked: tuple[Masked, ...]
    rows: Int[np.ndarray, " n"]


def pack(
    views: Sequence[Sequence[Segments]],
    layout: Layout,
    targets: Targets,
    masking: Masking | None = None,
    generator: np.random.Generator | None = None,
) -> Batch:
    """One batch of `views[example][view]`.

    masking: adds a masked copy of every segment, whose masked tokens are to be
    predicted; `generator` draws these tokens.
    """
    shape = len(views[0]), len(views)
    flat = [views[b][v] for v in range(shape[0]) for b in range(shape[1])]
    packed, vectors = _Read([], [], (), np.arange(sum(map(len, flat)))), None
    have_vectors = {view.vectors is not None for view in flat}
    assert len(have_vectors) == 1, "some documents of a batch have no vectors"
    if have_vectors == {True}:
        vectors = _stacked([view.vectors for view in flat], layout.rows)
    else:
        tower = np.repeat(layout.towers or (0,) * shape[0], shape[1])
        packed = _microbatches(flat, tower, layout, masking, generator)
    rows, lengths, places = _pointers(flat, packed.rows)
    graphs = device_graphs(flat, layout.graph, rows.shape[1], layout.sparse)
    by_view = lambda array: array.reshape(*shape, *array.shape[1:])
    return Batch(
        microbatches=tuple(packed.microbatches),
        rows=by_view(rows),
        lengths=by_view(lengths),
        places=by_view(places),
        graphs=Graphs(*(None if g is None else by_view(g) for g in graphs)),
        targets=targets,
        towers=tuple(packed.towers),
        masked=packed.masked,
        answers=np.float32(sum((m.answers >= 0).sum() for m in packed.masked)),
        vectors=vectors,
    )


def padding(batch: Batch) -> tuple[int, int]:
    """The numbers of token positions that are computed, and that hold a token."""
    computed = sum(m.tokens.shape[0] * m.tokens.shape[1] for m in batch.microbatches)
    return computed, sum(int(m.lengths.sum()) for m in batch.microbatches)


def _microbatches(
    views: Sequence[Segments],
    tower_of: Int[np.ndarray, " x"],
    layout: Layout,
    masking: Masking | None,
    generator: np.random.Generator | None,
) -> _Read:
    """The micro-batches of every tower, one tower after the other."""
    counts = np.array([len(view) for view in views])
    rows = np.empty(counts.sum(), np.int64)
    of_segment = np.repeat(tower_of, counts)
    micro, towers, masked, start = [], [], (), 0
    for tower in np.unique(tower_of):
        tower_views = [view for view, t in zip(views, tower_of) if t == tower]
        widths = *layout.widths, layout.limit
        read, grouped = microbatches(tower_views, lambda *_: layout.rows, widths)
        micro += read
        towers += [int(tower)] * len(grouped)
        of_this = of_segment == tower
        rows[of_this] = start + rows_of(grouped, int(of_this.sum()))
        start += layout.rows * len(grouped)
        if masking is not None:
            masked += masking(tower_views, grouped, generator)
    return _Read(micro, towers, masked, rows)


def _pointers(
    views: Sequence[Segments], rows: Int[np.ndarray, " n"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each view the rows, lengths and places of its segments, padded with 0."""
    height = round_up(max(map(len, views)))
    at = np.zeros((len(views), height), np.int32)
    lengths = np.zeros((len(views), height), np.int32)
    places = np.zeros((len(views), height, 2), np.int32)
    start = 0
    for number, view in enumerate(views):
        at[number, : len(view)] = rows[start : start + len(view)]
        lengths[number, : len(view)] = view.lengths
        places[number, : len(view)] = view.places
        start += len(view)
    return at, lengths, places


def _stacked(parts: Sequence[np.ndarray], height: int) -> np.ndarray:
    """Segment vectors [micro-batches height d], padded with zeros."""
    count, width = sum(map(len, parts)), parts[0].shape[-1]
    stacked = np.zeros((round_up(-(-count // height)), height, width), np.float32)
    stacked.reshape(-1, width)[:count] = np.concatenate(parts)
    return stacked
