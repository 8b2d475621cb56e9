"""Why two documents are similar: by document, by section and by segment.

The vectors of one model are compared. `docjax.explain.compare_page` shows the result.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Float

from docjax.data.documents import full_text
from docjax.data.segments import OneEach
from docjax.data.units import Cut, Passages, Sentences
from docjax.errors import UserError
from docjax.types import Document, Passage, Section, Segments

PASSAGES = 20  # the least passages of a text, if it has as many sentences
WORDS = 100  # the most words of a passage
TABLE = "words/table"  # the end of the path of word vectors in the parameters
PAIRS = 1 << 26  # the most pairs of segments to compare; memory grows with them


@dataclasses.dataclass(frozen=True, eq=False)
class Side:
    """One of the two documents of a comparison.

    Attributes:
      headings: of the sections that have segments; "" for a section without heading.
      segments: the texts to compare; their `section` is an index into `headings`.
      tokens: the tokens of `segments`.
      whole: the tokens from which the model makes the document's vector.
      same: whether `tokens` and `whole` are the same segments.
      segments_cut, tokens_cut: what the model's cap leaves out of the vector.
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

    similarity: the cosine of the documents' vectors from `encode`. sections: cosines of
    the sections, each the mean of its segments' vectors weighted by tokens. segments:
    cosines of the segments' vectors. Word vectors of a segment have the share that they
    have in the document. Rows belong to `a` and columns to `b`.
    """

    similarity: float
    sections: Float[np.ndarray, "_ _"]
    segments: Float[np.ndarray, "_ _"]
    a: Side
    b: Side


def cosines(
    a: Float[np.ndarray, "q d"], b: Float[np.ndarray, "c d"]
) -> Float[np.ndarray, "q c"]:
    """The cosine of each vector of `a` with each vector of `b`; 0 for a zero vector."""
    return np.clip(unit(a) @ unit(b).T, -1, 1)


def unit(vectors: Float[np.ndarray, "... d"]) -> Float[np.ndarray, "... d"]:
    """The vectors scaled to length 1; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)


def read(
    document: Document,
    cut: Cut,
    most: int | None,
) -> Side:
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
    same = cut.units.readable and cut.segments.one_each
    if not same:
        passages = Cut(_ComparedPassages(), OneEach(), cut.tokenizer, cut.limit)
        tokens, pieces = passages.with_texts(document)
    sections = document.sections or (Section("", ""),)
    numbers, places = np.unique([p.section for p in pieces], return_inverse=True)
    return Side(
        title=document.title or document.id,
        headings=[sections[n].heading for n in numbers],
        segments=[Passage(p.text, int(n)) for p, n in zip(pieces, places)],
        tokens=tokens,
        whole=kept,
        same=same,
        segments_cut=len(whole) - len(kept),
        tokens_cut=len(whole.tokens) - len(kept.tokens),
    )


@runtime_checkable
class Encodes(Protocol):
    """A model that encodes segments, and encodes documents from their segments."""

    def segments(
        self, params: Any, documents: Sequence[Segments]
    ) -> list[Float[np.ndarray, "p d"]]: ...

    def encode(
        self, params: Any, documents: Sequence[Segments]
    ) -> Iterator[Float[np.ndarray, " d"]]: ...


def compare(inference: Encodes, params: Any, a: Side, b: Side) -> Comparison:
    """The cosines of two documents that `read` prepared for the same model."""
    segments = inference.segments(params, [a.tokens, b.tokens])
    whole = [
        # If the segments are the same, they are not encoded again.
        dataclasses.replace(side.whole, vectors=vectors) if side.same else side.whole
        for side, vectors in zip((a, b), segments)
    ]
    documents = np.stack(list(inference.encode(params, whole)))
    segments = [_with_shares(params, vectors) for vectors in segments]
    return Comparison(
        similarity=float(cosines(documents[:1], documents[1:])[0, 0]),
        sections=cosines(_sections(a, segments[0]), _sections(b, segments[1])),
        segments=cosines(*segments),
        a=a,
        b=b,
    )


def _with_shares(
    params: Any, vectors: Float[np.ndarray, "p d"]
) -> Float[np.ndarray, "p d"]:
    """Segment vectors whose words have the share that `FromMean` gives them."""
    share = params.get("document", {}).get("share")
    if share is None:
        return vectors
    tables = jax.tree_util.tree_leaves_with_path(params["segment"])  # of every tower
    words = next(
        table.shape[1]
        for path, table in tables
        if jax.tree_util.keystr(path, simple=True, separator="/").endswith(TABLE)
    )
    known, of_words = unit(vectors[:, :-words]), unit(vectors[:, -words:])
    share = np.asarray(share)
    parts = [known * (1 - share) ** 0.5, of_words * share**0.5]
    return np.concatenate(parts, axis=1)


def check_pairs(sides: Sequence[Side], most: int) -> None:
    """Raises UserError for more than `most` pairs of segments."""
    if math.prod(len(side.segments) for side in sides) > most:
        a, b = (f"{len(side.segments):,}" for side in sides)
        raise UserError(
            f"{a} x {b} passages: at most {most:,} pairs are compared; give parts of "
            "the documents"
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


def _sections(
    side: Side, vectors: Float[np.ndarray, "p d"]
) -> Float[np.ndarray, "_ d"]:
    """The sum of each section's segment vectors, weighted by tokens.

    A cosine ignores the length, so that the sum stands for the mean.
    """
    sums = np.zeros((len(side.headings), vectors.shape[1]), np.float32)
    numbers = [segment.section for segment in side.segments]
    np.add.at(sums, numbers, vectors * side.tokens.lengths[:, None])
    return sums
