"""Chooses the documents of each step on words, and packs blocks for each replica."""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import grain
import numpy as np
from jaxtyping import Int

from docjax.data.corpus import Corpus
from docjax.data.word_blocks import (
    Blocks,
    Groups,
    Layout,
    Words,
    group,
    pack,
    subsampled,
)
from docjax.types import Units, Views


class WordBatch(NamedTuple):
    """What one step reads."""

    blocks: Blocks  # of each replica, along a new first axis
    views: Groups | None  # of all documents


def parts(documents: Words, number: int) -> list[Words]:
    """Cuts the documents into `number` parts with about equal numbers of words."""
    tokens, lengths = documents
    ends = np.cumsum(lengths)
    middles = (ends - lengths / 2) * number / len(tokens)
    cuts = np.searchsorted(middles, np.arange(number + 1))
    at = np.concatenate([[0], ends])
    spans = itertools.pairwise(cuts)
    return [Words(tokens[at[a] : at[b]], lengths[a:b]) for a, b in spans]


def stack(replicas: Sequence[Blocks]) -> Blocks:
    """Stacks replicas along a new first axis, padded to equal numbers of blocks."""
    most = max(len(blocks.words) for blocks in replicas)

    def wide(array: np.ndarray) -> np.ndarray:
        if not array.ndim or len(array) == most:
            return array
        return np.pad(array, [(0, most - len(array))] + [(0, 0)] * (array.ndim - 1))

    return Blocks(*(np.stack([wide(a) for a in field]) for field in zip(*replicas)))


@dataclasses.dataclass(frozen=True)
class WordBatches:
    """The blocks of a training run, by step; equal arguments give equal blocks.

    Every epoch shuffles `documents` (indices into the corpus) again; the last step
    of an epoch has the remaining documents.
    """

    corpus: Corpus
    documents: np.ndarray  # int [c]
    views: Views | None  # each call reads several documents
    noise: np.ndarray  # float [w], see `pack`
    layout: Layout
    batch: int
    limit: int | None  # most units of a document
    seed: int
    replicas: int = 1
    chances: np.ndarray | None = None  # float [w], see `subsampled`; None for all words

    @property
    def epoch_steps(self) -> int:
        return -(-len(self.documents) // self.batch)

    def dataset(self, steps: int) -> grain.MapDataset:
        """`(WordBatch, documents)` for each step."""
        return grain.MapDataset.range(steps).map(self._step)

    def _step(self, step: int) -> tuple[WordBatch, np.ndarray]:
        epoch, number = divmod(int(step), self.epoch_steps)
        # Grain's own shuffle would take a third of a step's time.
        order = _shuffled(self.seed, epoch, len(self.documents))
        chosen = self.documents[order[number * self.batch :][: self.batch]]
        units, views = self.corpus.concatenated(chosen, self.limit), None
        if self.views:
            changed = self.views(units, np.random.default_rng((self.seed, step, 1)))
            changed = [Words.of(first_of_each(view, self.limit)) for view in changed]
            views = group(changed, self.layout)
        generator = np.random.default_rng((self.seed, step))
        words = Words.of(units)
        if self.chances is not None:
            words = subsampled(words, self.chances, generator)
        replicas = parts(words, self.replicas)
        blocks = [pack(part, self.layout, self.noise, generator) for part in replicas]
        return WordBatch(stack(blocks), views), chosen


def first_of_each(units: Units, most: int | None) -> Units:
    """The first `most` units of each document (None: all units)."""
    if not most:
        return units
    first = np.flatnonzero(np.diff(units.documents, prepend=-1))
    counts = np.diff(first, append=len(units))
    rows = np.arange(len(units))
    kept = rows[rows - np.repeat(first, counts) < most]
    return units if len(kept) == len(units) else units.take(kept)


@functools.lru_cache(maxsize=2)
def _shuffled(seed: int, epoch: int, count: int) -> Int[np.ndarray, " b"]:
    return np.random.default_rng((seed, epoch, count)).permutation(count)
