"""Documents as blocks of words, for objectives that predict words.

A block holds the words of several documents one after the other, `window` places apart
and as many before its end, so that no window reaches into another document. A document
that does not fit into the rest of a block goes on in the next; the words drawn for it
come from the whole of it. Of a document, those words count that `subsampled` keeps.
"""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import grain
import numpy as np
from jaxtyping import Float, Int

from docjax.config import UserError
from docjax.data.batches import cap, round_up
from docjax.data.tokens import Corpus, spans
from docjax.types import Segments, Views

PAD = 0
COLUMN = 32
GROUP = 8


class Blocks(NamedTuple):
    """The words of some documents; the letters are those of `docjax.types`, and

    r  blocks; i  places of a column; n  columns of a block; p  documents of a block;
    s  words drawn for one; k  noise words of a place.

    The words of a block go down its columns, one column after the other.
    """

    words: Int[np.ndarray, "r i n"]  # 0 between documents and behind the last
    estimates: Int[np.ndarray, "r i n"]  # s times a word's document, and a draw below s
    drawn: Int[np.ndarray, "r p s"]  # words of each document of a block
    noise: Int[np.ndarray, "r i k"]
    windows: Int[np.ndarray, " r"]  # number of the window of each block
    used: Int[np.ndarray, ""]  # blocks that hold words, the first ones
    total: Int[np.ndarray, ""]  # words of all blocks


class Groups(NamedTuple):
    """The words of the documents' views, `GROUP` of them together; the letters are

    q  chunks; g  groups of a chunk; v  views; b  documents of the step.
    """

    words: Int[np.ndarray, "q g w"]  # 0 behind the last of a document
    owners: Int[np.ndarray, "q g"]  # b * view + document of a group, v * b for none
    used: Int[np.ndarray, ""]  # chunks that hold words, the first ones
    lengths: Int[np.ndarray, "v b"]  # words


class WordBatch(NamedTuple):
    """What one step reads."""

    blocks: Blocks  # of each replica, along a new first axis
    views: Groups | None  # of all documents


@dataclasses.dataclass(frozen=True)
class Layout:
    """The sizes that all blocks of a run share."""

    blocks: int  # of a replica and step, r; more where its documents are long
    words: int  # i * n
    column: int  # i
    window: int
    pieces: int  # p
    drawn: int  # s
    negatives: int  # k
    windows: int  # of which each block takes one
    chunks: int  # q, more where the documents of a step are long

    @classmethod
    def of(
        cls,
        lengths: Int[np.ndarray, " c"],
        batch: int,
        words: int,
        *,
        replicas: int = 1,
        share: float = 1.0,
        window: int,
        drawn: int,
        negatives: int,
        windows: int,
    ) -> "Layout":
        """A layout with room for the documents that a block and a step mostly hold.

        `batch` documents of a step are cut into `replicas` parts;
        `share` of their words are read, see `subsampled`.
        """
        column = max(COLUMN, window)
        if words < 4 * column or words % column:
            raise UserError(
                f"microbatch {words}: a block of words has a multiple of {column}, "
                f"{4 * column} at least"
            )
        taken = np.minimum(share * lengths, words - 2 * window) + window
        pieces = round_up(int(1.2 * words / taken.mean()) + 4)
        places = batch / replicas * (share * lengths.mean() + window)
        blocks = int(1.25 * places / words) + 1
        chunks = int(2.5 * batch * (lengths.mean() + GROUP / 2) / words) + 1
        return cls(
            blocks,
            words,
            column,
            window,
            pieces,
            drawn,
            negatives,
            windows,
            chunks,
        )


class Words(NamedTuple):
    """Those of several documents, one after the other."""

    tokens: Int[np.ndarray, " y"]
    lengths: Int[np.ndarray, " b"]  # of the documents

    @classmethod
    def of(cls, segments: Segments) -> "Words":
        """Segments of several documents, every document with one at least."""
        first = np.flatnonzero(np.diff(segments.numbers, prepend=-1))
        return cls(segments.tokens, np.add.reduceat(segments.lengths, first))


def subsampled(
    documents: Words,
    chances: Float[np.ndarray, " w"],
    generator: np.random.Generator,
) -> Words:
    """Each word is kept with its chance; one of a document at least."""
    tokens, lengths = documents
    starts = np.cumsum(lengths) - lengths
    drawn = generator.random(len(tokens)) / chances[tokens]
    least = np.minimum.reduceat(drawn, starts)
    kept = drawn <= np.repeat(np.maximum(least, 1), lengths)
    return Words(tokens[kept], np.add.reduceat(kept, starts, dtype=np.int64))


def pack(
    documents: Words,
    layout: Layout,
    noise: Float[np.ndarray, " w"],
    generator: np.random.Generator,
) -> Blocks:
    """The blocks of some documents, or none, in their order.

    `noise` are the chances of the words to be noise, summed up.
    """
    flat, lengths = documents
    starts = np.concatenate([[0], np.cumsum(lengths)])
    block, place, piece, source, size = _places(lengths, starts, layout)
    used = int(block.max(initial=-1)) + 1
    shape = layout.blocks if used <= layout.blocks else _few(used), layout.words
    words = np.full(shape, PAD, np.int32)
    estimates = generator.integers(layout.drawn, size=shape, dtype=np.int32)
    owner = np.searchsorted(starts, source, side="right") - 1
    at = spans(block * layout.words + place, size)
    words.ravel()[at] = flat[spans(source, size)]
    estimates.ravel()[at] += np.repeat(piece, size).astype(np.int32) * layout.drawn
    drawn = np.full((shape[0], layout.pieces, layout.drawn), PAD, np.int32)
    chosen = generator.random((len(owner), layout.drawn)) * lengths[owner][:, None]
    drawn[block, piece] = flat[starts[owner][:, None] + chosen.astype(np.int64)]
    chances = generator.random((shape[0], layout.column, layout.negatives))
    columns = lambda array: array.reshape(len(array), -1, layout.column).swapaxes(1, 2)
    return Blocks(
        columns(words),
        columns(estimates),
        drawn,
        np.searchsorted(noise, chances).astype(np.int32),
        generator.integers(layout.windows, size=shape[0], dtype=np.int32),
        np.array(used, np.int32),
        np.array(lengths.sum(), np.int32),
    )


def parts(documents: Words, number: int) -> list[Words]:
    """Cuts between documents, so that all parts have about as many words."""
    tokens, lengths = documents
    ends = np.cumsum(lengths)
    middles = (ends - lengths / 2) * number / max(len(tokens), 1)
    cuts = np.searchsorted(middles, np.arange(number + 1))
    cuts[-1] = len(lengths)
    at = np.concatenate([[0], ends])
    return [
        Words(tokens[at[first] : at[last]], lengths[first:last])
        for first, last in itertools.pairwise(cuts)
    ]


def stack(replicas: Sequence[Blocks]) -> Blocks:
    """Along a new first axis, with as many blocks for each."""
    most = max(len(blocks.words) for blocks in replicas)

    def wide(array: np.ndarray) -> np.ndarray:
        if not array.ndim or len(array) == most:
            return array
        return np.pad(array, [(0, most - len(array))] + [(0, 0)] * (array.ndim - 1))

    return Blocks(*(np.stack([wide(a) for a in field]) for field in zip(*replicas)))


def _places(lengths, starts, layout: Layout) -> tuple[np.ndarray, ...]:
    """Block, place in it, number in it, first word and size of every piece."""
    found = []
    block = place = piece = 0
    for start, length in zip(starts.tolist(), lengths.tolist()):
        end = start + length
        while start < end:
            room = layout.words - layout.window - place
            if piece == layout.pieces or room < 1:
                block, place, piece = block + 1, 0, 0
                continue
            size = min(end - start, room)
            found.append((block, place, piece, start, size))
            start, place, piece = start + size, place + size + layout.window, piece + 1
    return tuple(np.array(found, np.int64).reshape(-1, 5).T)


def group(views: Sequence[Words], layout: Layout) -> Groups:
    """The groups of the words of some documents' views."""
    tokens, lengths = map(np.concatenate, zip(*views, strict=True))
    sizes = -(-lengths // GROUP)
    chunk = layout.words // GROUP
    used = -(-int(sizes.sum()) // chunk)
    chunks = layout.chunks if used <= layout.chunks else _few(used)
    words = np.full((chunks, chunk, GROUP), PAD, np.int32)
    owners = np.full((chunks, chunk), len(lengths), np.int32)
    first = GROUP * (np.cumsum(sizes) - sizes)
    words.ravel()[spans(first, lengths)] = tokens
    owners.ravel()[: sizes.sum()] = np.repeat(np.arange(len(lengths)), sizes)
    by_view = lengths.reshape(len(views), -1).astype(np.int32)
    return Groups(words, owners, np.array(used, np.int32), by_view)


def _few(number: int) -> int:
    """The next number of the form 2^j or 3 * 2^j: few shapes to compile."""
    power = 1 << max(number - 1, 0).bit_length()
    return power // 4 * 3 if power >= 4 and number <= power // 4 * 3 else power


@dataclasses.dataclass(frozen=True)
class WordBatches:
    """The blocks of a training run, by step: the same for the same arguments.

    Every epoch shuffles `documents` (indices into the corpus) anew; the last step of an
    epoch has what is left.
    """

    corpus: Corpus
    documents: np.ndarray  # int [c]
    views: Views | None  # of several documents in one piece
    noise: np.ndarray  # float [w], see `pack`
    layout: Layout
    batch: int
    limit: int | None  # segments of a document
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
        # Grain's own shuffle takes the time of a third of a step.
        order = _shuffled(self.seed, epoch, len(self.documents))
        chosen = self.documents[order[number * self.batch :][: self.batch]]
        segments, views = self.corpus.concatenated(chosen, self.limit), None
        if self.views:
            found = self.views(segments, np.random.default_rng((self.seed, step, 1)))
            found = [Words.of(cap(view, self.limit)) for view in found]
            views = group(found, self.layout)
        generator = np.random.default_rng((self.seed, step))
        words = Words.of(segments)
        if self.chances is not None:
            words = subsampled(words, self.chances, generator)
        blocks = [
            pack(part, self.layout, self.noise, generator)
            for part in parts(words, self.replicas)
        ]
        return WordBatch(stack(blocks), views), chosen


@functools.lru_cache(maxsize=2)
def _shuffled(seed: int, epoch: int, count: int) -> Int[np.ndarray, " b"]:
    return np.random.default_rng((seed, epoch, count)).permutation(count)
