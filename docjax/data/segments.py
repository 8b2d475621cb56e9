"""Turns a view's units into segments, with special tokens around each segment.

The classes here say which neighbouring units share a segment; `cuts.py`, which exported
folders have too, computes the spans. No token is lost: a unit that is too long gets
several segments. Code that limits the number of segments counts what it leaves out.
"""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Int

from docjax.data import cuts
from docjax.types import Frame, SegmentCutter, Segments, Units


@dataclasses.dataclass(frozen=True)
class OneEach:
    """Every unit is one segment: passages as graph-roberta reads them."""

    one_each = True
    exported_as = "one_each"
    spans = staticmethod(cuts.one_each)


@dataclasses.dataclass(frozen=True)
class Joined:
    """Each segment takes units while they fit: sentences joined to 512 tokens.

    A unit that fills a segment, and the one after it, the rest of the same text, are cut
    where the segment before them is full.
    """

    across_sections: bool = True  # False ends a segment where a section ends
    one_each = False
    exported_as = "joined"

    def spans(
        self, lengths: Sequence[int], sections: Sequence[int], room: int
    ) -> Iterable[cuts.Span]:
        return cuts.joined(lengths, sections, room, self.across_sections)


@dataclasses.dataclass(frozen=True)
class Chunks:
    """The tokens of each section in consecutive chunks without overlap (CoLDE)."""

    one_each = False
    exported_as = "chunks"
    spans = staticmethod(cuts.chunks)


def segments(units: Units, cutter: SegmentCutter, frame: Frame) -> Segments:
    """The segments of the units of a view, a document or a query."""
    spans = _spans(units, cutter, frame)
    starts, ends, numbers = spans.T
    sizes = ends - starts
    offsets = np.concatenate([[0], np.cumsum(sizes + frame.special)])
    tokens = np.empty(offsets[-1], np.int32)
    for place, token in enumerate(frame.prefix):
        tokens[offsets[:-1] + place] = token
    for place, token in enumerate(frame.suffix):
        tokens[offsets[1:] - len(frame.suffix) + place] = token
    inside = spread(offsets[:-1] + len(frame.prefix), sizes)
    tokens[inside] = units.tokens[spread(starts, sizes)]
    unchanged = cutter.one_each and len(spans) == len(units)
    vectors = units.vectors if unchanged else None
    return Segments(tokens, offsets, _places(numbers), units.edges, vectors)


def texts(
    units: Units,
    cutter: SegmentCutter,
    frame: Frame,
    words: Sequence[str],
    begins: Sequence[np.ndarray],
    ends: Sequence[bool],
) -> list[str]:
    """The text of each segment of a document.

    words, begins, ends: for each unit its text, the characters at which its tokens
    begin, and whether it ends a text, which a space parts from the next.
    """
    if cutter.one_each:
        return list(words)
    spaced = [f"{text} " if end else text for text, end in zip(words, ends)]
    firsts = np.cumsum([0, *map(len, spaced)])  # the character where a unit begins
    # White space before a unit's first token belongs to that token.
    places = [a + np.where(np.arange(len(b)), b, 0) for a, b in zip(firsts, begins)]
    starts = np.concatenate([*places, firsts[-1:]])
    stops = starts.copy()  # of a text that ends before this token: without the space
    stops[units.offsets[1:]] = firsts[:-1] + list(map(len, words))
    whole = "".join(spaced)
    spans = _spans(units, cutter, frame).tolist()
    return [whole[starts[first] : stops[after]] for first, after, _ in spans]


def _spans(units: Units, cutter: SegmentCutter, frame: Frame) -> Int[np.ndarray, "p 3"]:
    lengths, sections = units.lengths.tolist(), units.sections.tolist()
    spans = list(cutter.spans(lengths, sections, frame.room))
    return np.array(spans, np.int64).reshape(-1, 3)


def spread(
    starts: Int[np.ndarray, " n"], sizes: Int[np.ndarray, " n"]
) -> Int[np.ndarray, " y"]:
    """The numbers from start to start + size of each span, one span after the other."""
    before = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum()) + np.repeat(starts - before, sizes)


def _places(sections: Int[np.ndarray, " p"]) -> Int[np.ndarray, "p 2"]:
    """The section of each segment, and the segment's number within the section."""
    rows = np.arange(len(sections))
    first = np.ones(len(sections), bool)
    first[1:] = sections[1:] != sections[:-1]
    begun = np.maximum.accumulate(np.where(first, rows, 0))
    return np.stack([sections, rows - begun], axis=1).astype(np.int32)
