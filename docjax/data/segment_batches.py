"""The batches of a training run: examples become views, segments and micro-batches."""

import dataclasses
import functools
import logging
from collections.abc import Callable, Iterator, Mapping

import grain
import numpy as np
from jaxtyping import Float, Int

from docjax.data import together
from docjax.data.corpus import Corpus
from docjax.data.examples import Examples
from docjax.data.halved import TrainingCorpus
from docjax.data.masking import Masking
from docjax.data.microbatches import SHAPES, bucket_widths
from docjax.data.packing import Layout, pack
from docjax.data.segments import OneEach, segments
from docjax.errors import UserError
from docjax.types import (
    DOCUMENT,
    Batch,
    Frame,
    SegmentCutter,
    Segments,
    Targets,
    Units,
    Views,
)

logger = logging.getLogger(__name__)

SAMPLE = 4096  # examples whose segments choose the widths of the micro-batches


@dataclasses.dataclass(frozen=True, eq=False)
class Reader:
    """Turns examples into the segments of their views.

    `views` makes views of a document; a query stays as it is, and is one segment.
    """

    corpora: Mapping[str, Corpus | TrainingCorpus]  # by the kind of a slot
    frames: Mapping[str, Frame]  # likewise
    views: Views
    cutter: SegmentCutter
    units: int | None  # the first ones of a document to read; None: all
    most: int | None  # the first segments of a view to read; None: all
    seed: int
    tokens: int | None = None  # the first ones of a view to read; None: all

    def kinds(self, slots: tuple[str, ...]) -> tuple[str, ...]:
        """The kind of each view of an example with these slots."""
        return tuple(
            kind
            for slot in slots
            for kind in (self.views.kinds if slot == DOCUMENT else (slot,))
        )

    def read(
        self, slots: tuple[str, ...], rows: Int[np.ndarray, " s"], epoch: int
    ) -> tuple[list[Segments], int]:
        """The segments of all views of one example, and the number of tokens that
        `most` and `tokens` leave out.

        The views of a document depend only on (seed, epoch, row).
        """
        by_view: list[Segments] = []
        cut = 0
        for slot, row in zip(slots, rows.tolist()):
            units, frame = self.corpora[slot][row], self.frames[slot]
            if slot != DOCUMENT:
                by_view.append(segments(units, OneEach(), frame).first(1))
                continue
            generator = np.random.default_rng((self.seed, epoch, row))
            for view in self.views(first_units(units, self.units), generator):
                kept = first_tokens(view, self.tokens)
                whole = segments(kept, self.cutter, frame)
                by_view.append(whole.first(self.most))
                cut += len(view.tokens) - len(kept.tokens)
                cut += len(whole.tokens) - len(by_view[-1].tokens)
        return by_view, cut

    def widths(self, examples: Examples, shapes: int = SHAPES) -> tuple[int, ...]:
        """At most `shapes` widths of micro-batches, chosen from a sample of examples.

        The last width has room for every segment, unless a view adds words.
        """
        lengths = np.concatenate([view.lengths for view in self.sample(examples)])
        longest = self._longest(examples.kinds)
        if lengths.max() >= longest:
            return bucket_widths(lengths, shapes)
        return *bucket_widths(lengths, shapes - 1), longest

    def sample(self, examples: Examples) -> Iterator[Segments]:
        """The views of at most SAMPLE examples, evenly spread."""
        every = -(-len(examples) // SAMPLE)
        for rows in examples.rows[::every]:
            yield from self.read(examples.kinds, rows, 0)[0]

    def _longest(self, slots: tuple[str, ...]) -> int:
        """The most tokens that a segment can have."""
        return max(map(self._longest_of, set(slots)))

    def _longest_of(self, slot: str) -> int:
        frame = self.frames[slot]
        texts = [frame.room]
        if slot == DOCUMENT and self.tokens:
            texts.append(self.tokens)
        if slot != DOCUMENT or self.cutter.one_each:
            texts.append(int(self.corpora[slot].lengths.max(initial=0)))
        return min(texts) + frame.special


def first_units(units: Units, most: int | None) -> Units:
    """The first `most` units (None: all units)."""
    if not most or len(units) <= most:
        return units
    return units.take(np.arange(most))


def first_tokens(units: Units, most: int | None) -> Units:
    """The units with the first `most` tokens (None: all); the last may be shortened."""
    if not most or len(units.tokens) <= most:
        return units
    whole = units.take(np.arange(np.searchsorted(units.offsets, most)))
    offsets = np.minimum(whole.offsets, most)
    return dataclasses.replace(whole, tokens=whole.tokens[:most], offsets=offsets)


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingBatches:
    """The batches of a training run, by step; equal arguments give equal batches.

    Every epoch orders the examples again and drops the last, incomplete batch. The order
    is random, or has related documents together (`docjax.data.together`).
    """

    reader: Reader
    examples: Examples
    batch: int
    layout: Layout
    masking: Masking | None = None
    teacher: Float[np.ndarray, "c f"] | None = None  # a vector of each document

    def __post_init__(self) -> None:
        check_fills(self.batch, len(self.examples))

    @property
    def epoch_steps(self) -> int:
        return len(self.examples) // self.batch

    def segments(self) -> int:
        """The number of segments of an average batch, estimated from a sample."""
        views = list(self.reader.sample(self.examples))
        sampled = len(views) / len(self.reader.kinds(self.examples.kinds))
        return round(sum(map(len, views)) / sampled * self.batch)

    def dataset(self, steps: int) -> grain.MapDataset:
        """`(Batch, rows)` for each step; `rows` [b s] are the rows of its examples."""
        epochs = -(-steps // self.epoch_steps)
        if self.examples.together is not None:
            return grain.MapDataset.range(epochs * self.epoch_steps).map(self._together)
        numbers = np.arange(len(self.examples))
        shuffled = grain.MapDataset.source(numbers).seed(self.reader.seed).shuffle()
        batches = shuffled.batch(self.batch, drop_remainder=True)
        return batches.repeat(epochs).map_with_index(self._made)

    def _together(self, step: int) -> tuple[Batch, Int[np.ndarray, "b s"]]:
        epoch, place = divmod(step, self.epoch_steps)
        chosen = self._order(epoch)[place * self.batch : (place + 1) * self.batch]
        return self._made(step, chosen)

    def _made(
        self, step: int, chosen: Int[np.ndarray, " b"]
    ) -> tuple[Batch, Int[np.ndarray, "b s"]]:
        """The batch of the chosen examples, and their rows."""
        examples, epoch = self.examples, step // self.epoch_steps
        rows = examples.rows[chosen]
        segmented = [self.reader.read(examples.kinds, row, epoch) for row in rows]
        views, cut = zip(*segmented, strict=True)
        related = examples.related(rows) if examples.related else None
        teacher = None if self.teacher is None else self.teacher[rows[:, 0]]
        targets = Targets(examples.labels[chosen].astype(np.int32), related, teacher)
        generator = np.random.default_rng((self.reader.seed, step, 2))
        batch = pack(views, self.layout, targets, self.masking, generator)
        return batch._replace(cut=sum(cut)), rows

    @functools.cached_property
    def _order(self) -> Callable[[int], Int[np.ndarray, " x"]]:
        """The order of the examples in an epoch; two epochs overlap where batches are
        made early."""
        documents, neighbours = self.examples.rows[:, 0], self.examples.together

        @functools.lru_cache(maxsize=2)
        def order(epoch: int) -> Int[np.ndarray, " x"]:
            generator = np.random.default_rng((self.reader.seed, epoch, 4))
            return together.order(documents, neighbours, generator)

        return order


def check_fills(batch: int, examples: int) -> None:
    """Raises UserError if there are fewer examples than a batch has."""
    if batch > examples:
        raise UserError(
            f"batch {batch} is larger than the {examples} training examples that can be "
            "used: lower --config.batch or give more documents"
        )


def log_cut(counts: Int[np.ndarray, " b"], most: int | None) -> None:
    """Logs how many units the limit leaves out of documents with `counts` units."""
    unread = np.maximum(counts - most, 0) if most else counts * 0
    if unread.any():
        text = "%d training documents have more than %d units: %d units are not read"
        logger.info(text, int((unread > 0).sum()), most, int(unread.sum()))
