"""Documents as blocks of words, for objectives that predict words.

A block holds the words of several documents. After each document, `window` places stay
empty, so that no window reaches into another document. A document that does not fit
into the rest of a block continues in the next block; the words drawn for it come from
the whole document. Only words kept by `subsampled` are used.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from docjax.data.microbatches import round_up
from docjax.data.segments import spread
from docjax.errors import UserError
from docjax.types import Units

PAD = 0
COLUMN = 32
GROUP = 8


class Blocks(NamedTuple):
    """The words of documents in blocks; here the letters of the axes are

    r  blocks; i  places of a column; n  columns of a block; p  documents of a block;
    s  words drawn for a document; k  noise words of a place.

    The words of a block fill its columns, one column after the other.
    """

    words: Int[np.ndarray, "r i n"]  # 0 between documents and after the last
    estimates: Int[np.ndarray, "r i n"]  # s * document of the word + a draw below s
    drawn: Int[np.ndarray, "r p s"]  # words drawn for each document of a block
    noise: Int[np.ndarray, "r i k"]
    windows: Int[np.ndarray, " r"]  # the number of each block's window
    used: Int[np.ndarray, ""]  # number of blocks with words; these come first
    total: Int[np.ndarray, ""]  # number of words of all blocks


class Groups(NamedTuple):
    """The words of the documents' views in groups of `GROUP`; here the letters are

    q  chunks; g  groups of a chunk; w  words of a group; v  views; b  documents of the
    step.
    """

    words: Int[np.ndarray, "q g w"]  # 0 after the last word of a document
    owners: Int[np.ndarray, "q g"]  # b * view + document; v * b for an unused group
    used: Int[np.ndarray, ""]  # number of chunks with words; these come first
    lengths: Int[np.ndarray, "v b"]  # number of words


@dataclasses.dataclass(frozen=True)
class Layout:
    """The sizes that all blocks of a run share."""

    blocks: int  # r, of a replica and step; more if documents are long
    words: int  # i * n
    column: int  # i
    window: int
    pieces: int  # p
    drawn: int  # s
    negatives: int  # k
    windows: int  # number of windows; each block draws one
    chunks: int  # q; more if the documents of a step are long

    @classmethod
    def of(  # noqa: PLR0913 the sizes of a run
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
        """A layout with room for the documents of a usual block and a usual step.

        A step cuts `batch` documents into `replicas` parts, and reads `share` of their
        words, see `subsampled`.
        """
        column = max(COLUMN, window)
        if words < 4 * column or words % column:
            raise UserError(
                f"microbatch {words}: give a multiple of {column}, at least "
                f"{4 * column}, as the number of words of a block"
            )
        taken = np.minimum(share * lengths, words - 2 * window) + window
        pieces = round_up(int(1.2 * words / taken.mean()) + 4)
        places = batch / replicas * (share * lengths.mean() + window)
        blocks = int(1.25 * places / words) + 1
        chunks = int(2.5 * batch * (lengths.mean() + GROUP / 2) / words) + 1
        return cls(
            blocks, words, column, window, pieces, drawn, negatives, windows, chunks
        )


class Words(NamedTuple):
    """The words of several documents, one document after the other."""

    tokens: Int[np.ndarray, " y"]
    lengths: Int[np.ndarray, " b"]  # of the documents

    @classmethod
    def of(cls, units: Units) -> "Words":
        """The words of several documents, which have at least one unit each."""
        first = np.flatnonzero(np.diff(units.documents, prepend=-1))
        return cls(units.tokens, np.add.reduceat(units.lengths, first))


def subsampled(
    documents: Words, chances: Float[np.ndarray, " w"], generator: np.random.Generator
) -> Words:
    """Keeps each word with its chance, and at least one word of each document."""
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
    """The blocks of the documents, in order; there may be no documents.

    `noise` is the cumulative sum of each word's chance to be noise.
    """
    flat, lengths = documents
    starts = np.concatenate([[0], np.cumsum(lengths)])
    block, place, piece, source, size = _places(lengths, starts, layout)
    used = int(block.max(initial=-1)) + 1
    shape = layout.blocks if used <= layout.blocks else _few(used), layout.words
    words = np.full(shape, PAD, np.int32)
    estimates = generator.integers(layout.drawn, size=shape, dtype=np.int32)
    owner = np.searchsorted(starts, source, side="right") - 1
    at = spread(block * layout.words + place, size)
    words.ravel()[at] = flat[spread(source, size)]
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


def _places(lengths, starts, layout: Layout) -> tuple[np.ndarray, ...]:
    """Block, place and number in the block, first word and size of every piece."""
    pieces = []
    block = place = piece = 0
    for start, length in zip(starts.tolist(), lengths.tolist()):
        end = start + length
        while start < end:
            room = layout.words - layout.window - place
            if piece == layout.pieces or room < 1:
                block, place, piece = block + 1, 0, 0
                continue
            size = min(end - start, room)
            pieces.append((block, place, piece, start, size))
            start, place, piece = start + size, place + size + layout.window, piece + 1
    return tuple(np.array(pieces, np.int64).reshape(-1, 5).T)


def group(views: Sequence[Words], layout: Layout) -> Groups:
    """The groups of the words of the documents' views."""
    tokens, lengths = map(np.concatenate, zip(*views, strict=True))
    sizes = -(-lengths // GROUP)
    chunk = layout.words // GROUP
    used = -(-int(sizes.sum()) // chunk)
    chunks = layout.chunks if used <= layout.chunks else _few(used)
    words = np.full((chunks, chunk, GROUP), PAD, np.int32)
    owners = np.full((chunks, chunk), len(lengths), np.int32)
    first = GROUP * (np.cumsum(sizes) - sizes)
    words.ravel()[spread(first, lengths)] = tokens
    owners.ravel()[: sizes.sum()] = np.repeat(np.arange(len(lengths)), sizes)
    by_view = lengths.reshape(len(views), -1).astype(np.int32)
    return Groups(words, owners, np.array(used, np.int32), by_view)


def _few(number: int) -> int:
    """The next number of the form 2^j or 3 * 2^j: few shapes to compile."""
    power = 1 << max(number - 1, 0).bit_length()
    return power // 4 * 3 if power >= 4 and number <= power // 4 * 3 else power
