"""Documents as blocks of words, for objectives that predict words.

A block holds the words of several documents one after the other, `window` places apart,
so that no window reaches into another document. A document that is longer than a block
goes on in further ones; the words drawn for it come from the whole of it.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import grain
import numpy as np
from jaxtyping import Int

from docjax.config import UserError
from docjax.data.batches import round_up
from docjax.data.tokens import Corpus
from docjax.types import Views

PAD = 0


class Blocks(NamedTuple):
    """The words of one step; the letters are those of `docjax.types`, and

    r  blocks; w  words of a block; p  documents of a block; s  words drawn for one;
    b  documents of the step; y  words of their paraphrases.
    """

    words: Int[np.ndarray, "r w"]  # 0 between documents and behind the last
    pieces: Int[np.ndarray, "r w"]  # which document of the block a word is of
    documents: Int[np.ndarray, "r w"]  # which of the step, b for none
    drawn: Int[np.ndarray, "r p s"]  # words of each document of a block
    used: Int[np.ndarray, ""]  # blocks that hold words, the first ones
    lengths: Int[np.ndarray, " b"]  # words of each document
    other: Int[np.ndarray, "v y"]  # words of the documents' second views, if any
    other_documents: Int[np.ndarray, "v y"]  # b for none


@dataclasses.dataclass(frozen=True)
class Layout:
    """The sizes that all blocks of a run share."""

    words: int  # w
    window: int
    pieces: int  # p
    drawn: int  # s

    @classmethod
    def of(
        cls, lengths: Int[np.ndarray, " b"], words: int, window: int, drawn: int
    ) -> "Layout":
        """A layout with room for the number of documents that a block mostly holds."""
        if words < 8 * (window + 1):
            raise UserError(
                f"microbatch {words}: a block of words should have {8 * (window + 1)} "
                f"at least, 8 windows of {window}"
            )
        taken = np.minimum(lengths, words - window) + window
        return cls(words, window, round_up(int(1.5 * words / taken.mean()) + 8), drawn)


def pack(
    documents: Sequence[np.ndarray],
    others: Sequence[np.ndarray],
    layout: Layout,
    generator: np.random.Generator,
) -> Blocks:
    """The blocks of some documents (int [words] each), in their order.

    `others` are their second views, or none.
    """
    lengths = np.array([len(one) for one in documents])
    flat = np.concatenate(documents)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    block, place, piece, source, size = _places(lengths, starts, layout)
    used = int(block[-1]) + 1
    shape = round_up(used), layout.words
    words = np.full(shape, PAD, np.int32)
    pieces = np.full(shape, layout.pieces - 1, np.int32)
    owners = np.full(shape, len(documents), np.int32)
    owner = np.searchsorted(starts, source, side="right") - 1
    at = np.repeat(block * layout.words + place, size) + _ranges(size)
    words.ravel()[at] = flat[np.repeat(source, size) + _ranges(size)]
    pieces.ravel()[at] = np.repeat(piece, size)
    owners.ravel()[at] = np.repeat(owner, size)
    drawn = np.full((shape[0], layout.pieces, layout.drawn), PAD, np.int32)
    chosen = generator.random((len(owner), layout.drawn)) * lengths[owner][:, None]
    drawn[block, piece] = flat[starts[owner][:, None] + chosen.astype(np.int64)]
    other, other_owners = _flat(others, len(documents))
    return Blocks(
        words,
        pieces,
        owners,
        drawn,
        np.array(used, np.int32),
        lengths.astype(np.int32),
        other,
        other_owners,
    )


def _places(lengths, starts, layout: Layout) -> tuple[np.ndarray, ...]:
    """Block, place in it, number in it, first word and size of every piece."""
    found = []
    block = place = piece = 0
    for start, length in zip(starts.tolist(), lengths.tolist()):
        end = start + length
        while start < end:
            room = layout.words - place
            whole = end - start <= room
            if piece == layout.pieces or (place and not whole):
                block, place, piece = block + 1, 0, 0
                continue
            size = min(end - start, room)
            found.append((block, place, piece, start, size))
            start, place, piece = start + size, place + size + layout.window, piece + 1
    return tuple(np.array(found, np.int64).T)


def _ranges(sizes: Int[np.ndarray, " n"]) -> Int[np.ndarray, " m"]:
    """0, 1, ... for each size, one after the other."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _flat(documents: Sequence[np.ndarray], none: int) -> tuple[np.ndarray, np.ndarray]:
    """All words, and the document of each; rounded up with padding."""
    if not len(documents):
        return np.zeros((0, 0), np.int32), np.zeros((0, 0), np.int32)
    sizes = np.array([len(one) for one in documents])
    words = np.full(round_up(int(sizes.sum())), PAD, np.int32)
    owners = np.full(len(words), none, np.int32)
    words[: sizes.sum()] = np.concatenate(documents)
    owners[: sizes.sum()] = np.repeat(np.arange(len(documents)), sizes)
    return words[None], owners[None]


@dataclasses.dataclass(frozen=True)
class WordBatches:
    """The blocks of a training run, by step: the same for the same arguments.

    Every epoch shuffles `documents` (indices into the corpus) anew; the last step of an
    epoch has what is left. The views of a document depend on (seed, epoch, document)
    only.
    """

    corpus: Corpus
    documents: np.ndarray  # int [c]
    views: Views | None
    layout: Layout
    batch: int
    seed: int

    @property
    def epoch_steps(self) -> int:
        return -(-len(self.documents) // self.batch)

    def dataset(self, steps: int) -> grain.MapDataset:
        """`(Blocks, documents)` for each step."""
        epochs = -(-steps // self.epoch_steps)
        shuffled = grain.MapDataset.source(self.documents).seed(self.seed).shuffle()
        return shuffled.batch(self.batch).repeat(epochs).map_with_index(self._step)

    def _step(self, step: int, chosen: np.ndarray) -> tuple[Blocks, np.ndarray]:
        starts, tokens = self._starts, self.corpus.tokens
        documents = [np.asarray(tokens[starts[i] : starts[i + 1]]) for i in chosen]
        others = self._others(chosen, step // self.epoch_steps) if self.views else []
        generator = np.random.default_rng((self.seed, step))
        return pack(documents, others, self.layout, generator), chosen

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        return self.corpus.starts()

    def _others(self, chosen: np.ndarray, epoch: int) -> list[np.ndarray]:
        """The second views."""
        found = []
        for i in chosen:
            generator = np.random.default_rng((self.seed, epoch, int(i)))
            found.append(self.views(self.corpus[int(i)], generator)[1].tokens)
        return found
