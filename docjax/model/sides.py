"""The documents of a comparison: which of their segments a reader can compare.

`compare.py` encodes them.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from docjax.data.records import full_text
from docjax.data.segments import OneEach
from docjax.data.units import Cut, Passages, Sentences
from docjax.types import Document, Passage, Section, Segments

PASSAGES = 20  # the least passages of a text, if it has as many sentences
WORDS = 100  # the most words of a passage


@dataclasses.dataclass(frozen=True, eq=False)
class Side:
    """One of the two documents of a comparison."""

    title: str
    headings: list[str]  # of the sections that have segments; "" without a heading
    segments: list[Passage]  # to compare; their `section` is an index into `headings`
    tokens: Segments  # of `segments`
    whole: Segments  # from which the model makes the document's vector
    pieces: list[Passage]  # the texts of `whole`
    same: bool  # whether `tokens` and `whole` are the same segments
    alone: Sequence[Segments]  # if not: each section, as a document of this section
    segments_cut: int  # what the model's cap leaves out of the vector
    tokens_cut: int


def read(document: Document, cut: Cut, most: int | None) -> Side:
    """A document prepared for a comparison by a model that cuts documents with `cut`.

    Some models have segments that are too long for a reader (word averages, plain
    transformers, joined sentences). They compare passages of about a PASSAGES-th of
    the document's words, at most WORDS.

    Args:
      most: the number of segments in the document's vector; None: all.
    """
    whole, pieces = cut.with_texts(document)
    kept = whole.first(most)
    tokens, pieces = kept, pieces[: len(kept)]
    of_whole = pieces
    same = cut.units.readable and cut.segments.one_each
    if not same:
        passages = Cut(_ComparedPassages(), OneEach(), cut.tokenizer, cut.limit)
        tokens, pieces = passages.with_texts(document)
    sections = document.sections or (Section("", ""),)
    numbers, places = np.unique([p.section for p in pieces], return_inverse=True)
    alone = (  # the title belongs to the first section
        Document(document.id, (sections[n],), title="" if n else document.title)
        for n in numbers.tolist()
    )
    return Side(
        title=document.title or document.id,
        headings=[sections[n].heading for n in numbers],
        segments=[Passage(p.text, int(n)) for p, n in zip(pieces, places)],
        tokens=tokens,
        whole=kept,
        pieces=of_whole,
        same=same,
        alone=() if same else [cut.with_texts(each)[0].first(most) for each in alone],
        segments_cut=len(whole) - len(kept),
        tokens_cut=len(whole.tokens) - len(kept.tokens),
    )


@dataclasses.dataclass(frozen=True)
class _ComparedPassages:
    """Cuts a short text into sentences, and a long text into passages.

    Title and headings count only if the document has no other text: "Summary" would be
    the strongest link of many documents.
    """

    readable = True

    def __call__(self, document: Document) -> list[Passage]:
        texts = tuple(Section("", section.text) for section in document.sections)
        bare = dataclasses.replace(document, title="", sections=texts)
        words = min(WORDS, len(full_text(bare).split()) // PASSAGES)
        return Passages(max(words, 1))(bare) or Sentences()(document)
