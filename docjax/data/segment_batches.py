"""Batches: flat in segments, in micro-batches of similar length.

The segments of all documents and views are sorted by length and cut into
micro-batches of one height (`microbatch` segments) and few widths, so that nearly
no padding is computed and a run compiles few shapes. Documents point into them.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from absl import logging
from jaxtyping import Int

from docjax.data import graphs
from docjax.data.corpus import Corpus
from docjax.errors import UserError
from docjax.types import Batch, Microbatch, Segments, Views


def bucket_widths(
    lengths: Int[np.ndarray, " n"], shapes: int = 16, multiple: int = 8
) -> tuple[int, ...]:
    """At most `shapes` widths that cover `lengths` with the least padding.

    Exact, by dynamic programming over the distinct lengths rounded up to `multiple`.
    The last is the longest length itself: a position table may have no more room.
    """
    rounded = -(-np.maximum(lengths, 1) // multiple) * multiple
    widths, counts = np.unique(rounded, return_counts=True)
    widths[-1] = max(1, lengths.max())
    below = np.concatenate([[0], np.cumsum(counts)])
    cost = np.where(np.arange(len(widths) + 1) == 0, 0.0, np.inf)
    choices = []
    for _ in range(min(shapes, len(widths))):
        # Segments below[i]..below[j] go into one bucket of width widths[j - 1].
        bucket = (below[None, 1:] - below[:, None]) * widths[None, :]
        bucket = np.where(bucket < 0, np.inf, bucket.astype(float))
        total = cost[:, None] + bucket
        choices.append(total.argmin(axis=0))
        cost = np.concatenate([[np.inf], total.min(axis=0)])
    chosen, end = [], len(widths)
    for choice in reversed(choices):
        if end == 0:
            break
        chosen.append(int(widths[end - 1]))
        end = int(choice[end - 1])
    return tuple(reversed(chosen))


def pack(
    views: Sequence[Sequence[Segments]],
    microbatch: int,
    widths: Sequence[int],
    graph: graphs.Builder | None,
    *,
    labels: Int[np.ndarray, " b"] | None = None,
    sparse: bool = False,
) -> Batch:
    """One batch from `views[document][view]`.

    `sparse` gives the graphs as edges instead of adjacency matrices.
    """
    shape = len(views[0]), len(views)
    flat = [views[b][v] for v in range(shape[0]) for b in range(shape[1])]
    micro, place, vectors = [], np.arange(sum(map(len, flat))), None
    if flat[0].vectors is None:
        micro, place = microbatches(flat, lambda *_: microbatch, widths)
    else:
        vectors = _stack([one.vectors for one in flat], microbatch)
    height = round_up(max(len(one) for one in flat))
    rows = np.zeros((len(flat), height), np.int32)
    lengths = np.zeros((len(flat), height), np.int32)
    start = 0
    for i, one in enumerate(flat):
        rows[i, : len(one)] = place[start : start + len(one)]
        lengths[i, : len(one)] = one.lengths
        start += len(one)
    adjacency, edges = device_graphs(flat, graph, height, sparse)
    unflatten = lambda a: None if a is None else a.reshape(*shape, *a.shape[1:])
    return Batch(
        microbatches=tuple(micro),
        rows=unflatten(rows),
        lengths=unflatten(lengths),
        adjacency=unflatten(adjacency),
        edges=unflatten(edges),
        labels=np.array(labels if labels is not None else [-1] * shape[1], np.int32),
        vectors=vectors,
    )


def microbatches(
    documents: Sequence[Segments],
    height: Callable[[int, int, int], int],
    widths: Sequence[int],
) -> tuple[list[Microbatch], Int[np.ndarray, " n"]]:
    """The segments of all documents by length, in micro-batches.

    `height(number, width, remaining)` says how many rows the micro-batch of that number
    has. Longest first; the last micro-batch holds the rest and unused rows. Also gives
    each segment's row, counted over the micro-batches laid end to end.
    """
    pieces = [
        one.tokens[one.offsets[i] : one.offsets[i + 1]]
        for one in documents
        for i in range(len(one))
    ]
    lengths = np.array([len(piece) for piece in pieces], np.int32)
    order = np.argsort(-lengths, kind="stable")
    place = np.empty(len(pieces), np.int64)
    found, start, row = [], 0, 0
    while start < len(order):
        longest = len(pieces[order[start]])
        wide = (width for width in widths if width >= longest)
        width = next(wide, -(-longest // 8) * 8)  # a view may have added words
        rows = height(len(found), width, len(order) - start)
        tokens = np.zeros((rows, width), np.int32)
        chosen = order[start : start + rows]
        for i, number in enumerate(chosen):
            tokens[i, : lengths[number]] = pieces[number]
        real = np.zeros(rows, np.int32)
        real[: len(chosen)] = lengths[chosen]
        place[chosen] = row + np.arange(len(chosen))
        found.append(Microbatch(tokens, real))
        start, row = start + len(chosen), row + rows
    return found, place


def _stack(parts: Sequence[np.ndarray], height: int) -> np.ndarray:
    """Segment vectors [micro-batches height d], zero behind the last."""
    count, width = sum(map(len, parts)), parts[0].shape[-1]
    found = np.zeros((round_up(-(-count // height)), height, width), np.float32)
    found.reshape(-1, width)[:count] = np.concatenate(parts)
    return found


def device_graphs(
    documents: Sequence[Segments],
    graph: graphs.Builder | None,
    height: int,
    sparse: bool,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Adjacency matrices [b 1+height 1+height], or edges [b e 2] if `sparse`."""
    if graph is None:
        return None, None
    built = [graph(len(one), one.sections, one.edges) for one in documents]
    if sparse:
        most = round_up(max(len(one.senders) for one in built))
        return None, np.stack([graphs.edge_list(one, most) for one in built])
    return np.stack([graphs.adjacency(one, 1 + height) for one in built]), None


def cap(segments: Segments, most: int | None) -> Segments:
    """The first `most` segments of a document, or of each that has a number; None: all."""
    if not most or len(segments) <= most:
        return segments
    rows = np.arange(len(segments))
    if segments.numbers is not None:
        first = np.flatnonzero(np.diff(segments.numbers, prepend=-1))
        rows = rows[rows - np.repeat(first, np.diff(first, append=len(rows))) < most]
        return segments if len(rows) == len(segments) else segments.take(rows)
    return segments.take(rows[:most])


def round_up(number: int) -> int:
    """The next number of the form 1..8 or (4..7) * 2^j: few shapes, little waste."""
    step = 1 << max(0, int(number).bit_length() - 3)
    return max(1, -(-number // step) * step)


def padding(batch: Batch) -> float:
    """The share of computed token positions that hold no real token."""
    computed = sum(m.tokens.shape[0] * m.tokens.shape[1] for m in batch.microbatches)
    real = sum(int(m.lengths.sum()) for m in batch.microbatches)
    return 1 - real / computed if computed else 0.0


@dataclasses.dataclass(frozen=True)
class TrainingBatches:
    """The batches of a training run, by step: the same for the same arguments.

    Every epoch shuffles `documents` (indices into the corpus) anew and leaves out
    the few that do not fill a batch. The views of a document depend on (seed, epoch,
    document) only.
    """

    corpus: Corpus
    documents: np.ndarray  # int [c]
    labels: np.ndarray  # int [documents of the corpus], -1 without label
    views: Views
    graph: graphs.Builder | None
    batch: int
    microbatch: int
    limit: int | None  # segments of a document, None: all
    seed: int
    sparse: bool = False

    def __post_init__(self) -> None:
        if not len(self.documents):
            raise UserError(
                f"no training document has {self.views.least_segments} segments or "
                "more, or none is in the split --config.splits.train"
            )
        if self.batch > len(self.documents):
            raise UserError(
                f"batch {self.batch} is larger than the {len(self.documents)} training "
                f"documents with at least {self.views.least_segments} segments: lower "
                "--config.batch or give more documents"
            )

    @property
    def epoch_steps(self) -> int:
        return len(self.documents) // self.batch

    def widths(self, shapes: int = 16) -> tuple[int, ...]:
        """Micro-batch widths for the segments of the training documents."""
        chosen = np.zeros(len(self.corpus.counts), bool)
        chosen[self.documents] = True
        training = np.repeat(chosen, self.corpus.counts)
        return bucket_widths(self.corpus.lengths[training], shapes)

    def dataset(self, steps: int) -> Any:
        """`(Batch, documents)` for each step, as a `grain.MapDataset`."""
        import grain  # encoding does without it

        make: Callable = _Maker(self, self.widths())
        epochs = -(-steps // self.epoch_steps)
        shuffled = grain.MapDataset.source(self.documents).seed(self.seed).shuffle()
        batches = shuffled.batch(self.batch, drop_remainder=True)
        return batches.repeat(epochs).map_with_index(make)


@dataclasses.dataclass(frozen=True)
class _Maker:
    batches: TrainingBatches
    widths: tuple[int, ...]

    def __call__(self, step: int, documents: np.ndarray) -> tuple[Batch, np.ndarray]:
        spec = self.batches
        epoch = step // spec.epoch_steps
        views = [self.views(epoch, int(document)) for document in documents]
        labels = spec.labels[documents]
        batch = pack(
            views,
            spec.microbatch,
            self.widths,
            spec.graph,
            labels=labels,
            sparse=spec.sparse,
        )
        return batch, documents

    def views(self, epoch: int, document: int) -> tuple[Segments, ...]:
        segments = cap(self.batches.corpus[document], self.batches.limit)
        generator = np.random.default_rng((self.batches.seed, epoch, document))
        views = self.batches.views(segments, generator)
        return tuple(cap(view, self.batches.limit) for view in views)


def log_cut(counts: Int[np.ndarray, " b"], limit: int | None) -> None:
    """Says how many segments of documents with `counts` of them a limit cuts."""
    if limit:
        logging.info(
            "%d training documents are longer than %d segments: %d segments are cut",
            int((counts > limit).sum()),
            limit,
            int(np.maximum(counts - limit, 0).sum()),
        )
