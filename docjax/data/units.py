"""Cuts documents into units: passages, sentences, or the whole text.

A unit is the smallest piece that a view may move. `segments.py` says which units share
a segment. `pieces.py`, which exported folders have too, cuts the texts.
"""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from docjax.data import pieces
from docjax.data.segments import segments, texts
from docjax.data.tokenizer import Tokenizer
from docjax.errors import UserError
from docjax.types import (
    Document,
    Frame,
    Passage,
    SegmentCutter,
    Segments,
    UnitCutter,
    Units,
)


@dataclasses.dataclass(frozen=True)
class Passages:
    """Passages of at most `words` words that respect sentences and sections.

    A passage takes sentences while they fit; a longer sentence is a passage alone.
    Title and heading are read as sentences. White space becomes single spaces.
    """

    words: int = 100
    readable = True
    exported_as = "passages"

    def __post_init__(self) -> None:
        if self.words < 1:
            raise UserError(f"units.words {self.words}: give at least 1 word")

    @property
    def cut_in_words(self) -> str:
        return f"in passages of up to {self.words} words"

    def __call__(self, document: Document) -> list[Passage]:
        return [Passage(*piece) for piece in pieces.passages(document, self.words)]


@dataclasses.dataclass(frozen=True)
class Sentences:
    """Each sentence, title and heading is a unit. White space as in `Passages`."""

    readable = True
    cut_in_words = None
    exported_as = "sentences_of"

    def __call__(self, document: Document) -> list[Passage]:
        return [Passage(*piece) for piece in pieces.sentences_of(document)]


@dataclasses.dataclass(frozen=True)
class Whole:
    """The full text as one unit, as written, in the first section."""

    readable = False
    cut_in_words = ""
    exported_as = "whole"

    def __call__(self, document: Document) -> list[Passage]:
        return [Passage(*piece) for piece in pieces.whole(document)]


@dataclasses.dataclass(frozen=True)
class WholeSections:
    """The full text of each section as one unit, as written.

    Without sections it is the full text of the document.
    """

    readable = False
    cut_in_words = ""
    exported_as = "whole_sections"

    def __call__(self, document: Document) -> list[Passage]:
        return [Passage(*piece) for piece in pieces.whole_sections(document)]


@dataclasses.dataclass(frozen=True, eq=False)
class Cut:
    """Cuts documents into units, and the units into segments."""

    units: UnitCutter
    segments: SegmentCutter
    tokenizer: Tokenizer
    limit: int  # of a segment in tokens; a unit that does not fit becomes several

    @property
    def frame(self) -> Frame:
        return self.tokenizer.frame(self.limit)

    def documents(self, documents: Sequence[Document]) -> list[Segments]:
        """The segments of each document."""
        tokenized = tokenize(documents, self.units, self.tokenizer, self.limit)
        return [segments(units, self.segments, self.frame) for units in tokenized]

    def with_texts(self, document: Document) -> tuple[Segments, list[Passage]]:
        """The segments of one document, and the text of each."""
        how = self.units, self.tokenizer, self.limit
        units, words, begins, ends = _tokenize_with_texts(document, *how)
        cut = segments(units, self.segments, self.frame)
        pieces = texts(units, self.segments, self.frame, words, begins, ends)
        return cut, list(map(Passage, pieces, cut.sections.tolist()))


def tokenize(
    documents: Sequence[Document], cutter: UnitCutter, tokenizer: Tokenizer, limit: int
) -> list[Units]:
    """The units of each document; fast, since one call encodes all texts.

    A unit has tokens: a text without any, such as a zero-width space for WordPiece, is
    no unit. A document without any token is one empty unit. A unit that does not fit
    into a segment of `limit` tokens becomes several.
    """
    room = tokenizer.frame(limit).room
    cut = [cutter(document) for document in documents]
    ids = iter(tokenizer.encode([piece.text for pieces in cut for piece in pieces]))
    token_ids = (list(itertools.islice(ids, len(pieces))) for pieces in cut)
    return [
        _units(document, pieces, unit_ids, room)
        for document, pieces, unit_ids in zip(documents, cut, token_ids)
    ]


def _tokenize_with_texts(
    document: Document, cutter: UnitCutter, tokenizer: Tokenizer, limit: int
) -> tuple[Units, list[str], list[np.ndarray], list[bool]]:
    """The units of one document, the text of each, and where its tokens begin.

    The third item counts characters from the beginning of the unit's text; the fourth
    says whether the unit ends a text: a long one is several units.
    """
    room = tokenizer.frame(limit).room
    pieces = cutter(document)
    encoded = [tokenizer.encode_with_spans(piece.text) for piece in pieces]
    ids, words, begins, ends = [tokens for tokens, _ in encoded], [], [], []
    for row in _with_tokens(ids):
        piece, (tokens, spans) = pieces[row], encoded[row]
        begin = spans[:, 0]
        for first in range(0, max(len(tokens), 1), room):
            # The first piece keeps white space at the start of the text.
            at = int(begin[first]) if first else 0
            after = first + room
            end = int(begin[after]) if after < len(begin) else len(piece.text)
            words.append(piece.text[at:end])
            begins.append(np.maximum(begin[first:after] - at, 0))
            ends.append(after >= len(tokens))
    return _units(document, pieces, ids, room), words, begins, ends


def _units(
    document: Document, pieces: Sequence[Passage], ids: Sequence[np.ndarray], room: int
) -> Units:
    tokens, sections = [], []
    for row in _with_tokens(ids):
        unit = ids[row]
        for start in range(0, max(len(unit), 1), room):
            tokens.append(unit[start : start + room])
            sections.append(pieces[row].section)
    return Units(
        np.concatenate(tokens) if tokens else np.zeros(0, np.int32),
        np.cumsum([0, *map(len, tokens)]).astype(np.int64),
        np.array(sections, np.int32),
        np.array(document.edges, np.int32).reshape(-1, 2),
    )


def _with_tokens(ids: Sequence[np.ndarray]) -> list[int]:
    """The numbers of the texts that have tokens; of the first text if none has any."""
    return [row for row, unit in enumerate(ids) if len(unit)] or [0][: len(ids)]
