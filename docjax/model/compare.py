"""Why two documents are similar: by document, by section and by segment.

What is compared are the vectors of one model; the page that shows it is
`docjax.explain.compare_page`.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from docjax.data.documents import full_text
from docjax.data.segments import OneEach
from docjax.data.units import Cut, Passages, Sentences
from docjax.errors import UserError
from docjax.types import Document, Passage, Section, Segments

PASSAGES = 20  # that a text is cut into at least, if it has as many sentences
WORDS = 100  # of a passage at most
PAIRS = 1 << 26  # of segments that are compared; memory grows with them


@dataclasses.dataclass(frozen=True, eq=False)
class Side:
    """One of the two documents, as it is compared.

    Attributes:
      headings: of its sections that have segments; a section without heading has "".
      segments: what is compared; their `section` counts `headings`.
      tokens: of the segments.
      whole: the tokens that the document's vector is made of.
      same: the compared segments are those of the document's vector.
      segments_cut, tokens_cut: what the model's cap leaves out of that vector.
    """

    title: str
    headings: list[str]
    segments: list[Passage]
    tokens: Segments
    whole: Segments
    same: bool
    segments_cut: int
    tokens_cut: int


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Cosines of two documents, and of their parts.

    similarity: of the documents' vectors, as `encode` gives them; sections: of the
    means of their segments' vectors, weighted by tokens; segments: of their vectors.
    Rows are those of `a`, columns those of `b`, which hold the texts.
    """

    similarity: float
    sections: Float[np.ndarray, "_ _"]
    segments: Float[np.ndarray, "_ _"]
    a: Side
    b: Side


def cosines(
    a: Float[np.ndarray, "q d"], b: Float[np.ndarray, "c d"]
) -> Float[np.ndarray, "q c"]:
    """The cosine of every vector of `a` with every one of `b`; of a zero vector, 0."""
    return np.clip(unit(a) @ unit(b).T, -1, 1)


def unit(vectors: Float[np.ndarray, "... d"]) -> Float[np.ndarray, "... d"]:
    """The vectors scaled to length 1; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)


def read(
    document: Document,
    cut: Cut,
    most: int | None,
) -> Side:
    """A document as it is compared by a model that cuts documents so.

    A model whose segments are too long to look at (word averages, plain transformers,
    joined sentences) compares documents by passages of about a PASSAGES-th of their
    words, at most WORDS.

    Args:
      most: segments that the document's vector is made of; None: all.
    """
    whole, pieces = cut.with_texts(document)
    kept = whole.first(most)
    compared, pieces = kept, pieces[: len(kept)]
    same = cut.units.readable and cut.segments.one_each
    if not same:
        passages = Cut(_ComparedPassages(), OneEach(), cut.tokenizer, cut.limit)
        compared, pieces = passages.with_texts(document)
    sections = document.sections or (Section("", ""),)
    numbers, places = np.unique([p.section for p in pieces], return_inverse=True)
    return Side(
        title=document.title or document.id,
        headings=[sections[n].heading for n in numbers],
        segments=[Passage(p.text, int(n)) for p, n in zip(pieces, places)],
        tokens=compared,
        whole=kept,
        same=same,
        segments_cut=len(whole) - len(kept),
        tokens_cut=len(whole.tokens) - len(kept.tokens),
    )


@runtime_checkable
class Encodes(Protocol):
    """A model that encodes segments, and documents from them."""

    def segments(
        self, params: Any, documents: Sequence[Segments]
    ) -> list[Float[np.ndarray, "p d"]]: ...

    def encode(
        self, params: Any, documents: Sequence[Segments]
    ) -> Iterator[Float[np.ndarray, " d"]]: ...


def compare(inference: Encodes, params: Any, a: Side, b: Side) -> Comparison:
    """The cosines of two documents that were read for the same model."""
    parts = inference.segments(params, [a.tokens, b.tokens])
    whole = [
        # What is compared is mostly what the document's vector is made of.
        dataclasses.replace(side.whole, vectors=part) if side.same else side.whole
        for side, part in zip((a, b), parts)
    ]
    documents = np.stack(list(inference.encode(params, whole)))
    return Comparison(
        similarity=float(cosines(documents[:1], documents[1:])[0, 0]),
        sections=cosines(_sections(a, parts[0]), _sections(b, parts[1])),
        segments=cosines(*parts),
        a=a,
        b=b,
    )


def check_pairs(sides: Sequence[Side], most: int) -> None:
    """Raises UserError for more than `most` pairs of segments."""
    if math.prod(len(side.segments) for side in sides) > most:
        a, b = (f"{len(side.segments):,}" for side in sides)
        raise UserError(
            f"{a} x {b} passages: at most {most:,} pairs are compared; compare parts of "
            "the documents"
        )


@dataclasses.dataclass(frozen=True)
class _ComparedPassages:
    """The sentences of a short text, passages of a long one.

    Title and headings are read only if there is nothing else: "Summary" would be the
    strongest link of many documents.
    """

    readable = True

    def __call__(self, document: Document) -> list[Passage]:
        texts = tuple(Section("", section.text) for section in document.sections)
        bare = dataclasses.replace(document, title="", sections=texts)
        words = min(WORDS, len(full_text(bare).split()) // PASSAGES)
        return Passages(max(words, 1))(bare) or Sentences()(document)


def _sections(
    side: Side, vectors: Float[np.ndarray, "p d"]
) -> Float[np.ndarray, "_ d"]:
    """The direction of each section's vector; its length does not matter."""
    found = np.zeros((len(side.headings), vectors.shape[1]), np.float32)
    numbers = [segment.section for segment in side.segments]
    np.add.at(found, numbers, vectors * side.tokens.lengths[:, None])
    return found
