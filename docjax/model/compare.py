"""Why two documents are similar: by document, by section and by segment.

What is compared are the vectors of one model; the page that shows it is
`docjax.explain.compare_page`.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from docjax.data import corpus as tokens
from docjax.data import segment_batches as batches
from docjax.data import units as segments
from docjax.data.documents import full_text
from docjax.data.tokenizer import Tokenizer
from docjax.errors import UserError
from docjax.model.inference import Inference
from docjax.types import Document, Section, Segment, Segments

PASSAGES = 20  # that a text is cut into at least, if it has as many sentences
WORDS = 100  # of a passage at most
PAIRS = 1 << 26  # of segments that are compared


@dataclasses.dataclass(frozen=True, eq=False)
class Side:
    """One of the two documents, as it is compared.

    Attributes:
      headings: of its sections that have segments; a section without heading has "".
      segments: what is compared; their `section` counts `headings`.
      tokens: of the segments.
      whole: the tokens that the document's vector is made of.
      segments_cut, tokens_cut: what the model's cap leaves out of that vector.
    """

    title: str
    headings: list[str]
    segments: list[Segment]
    tokens: Segments
    whole: Segments
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
    cut: Callable[[Document], list[Segment]],
    tokenizer: Tokenizer,
    limits: Mapping[str, Any],
) -> Side:
    """A document as it is compared by a model with these segments and limits.

    A model that reads the whole text in pieces of its own length (word averages, plain
    transformers) has no segments to show: its documents are compared by passages of
    about a PASSAGES-th of their words, at most WORDS.
    """
    limit = limits["segment_tokens"]
    whole, pieces = tokens.segment_document(document, cut, tokenizer, limit)
    kept = batches.cap(whole, limits["inference_segments"])
    compared, pieces = kept, pieces[: len(kept)]
    if getattr(cut, "func", cut) is segments.whole:
        compared, pieces = tokens.segment_document(
            document, _passages, tokenizer, limit
        )
    sections = document.sections or (Section("", ""),)
    numbers, places = np.unique([p.section for p in pieces], return_inverse=True)
    return Side(
        title=document.title or document.id,
        headings=[sections[n].heading for n in numbers],
        segments=[Segment(p.text, int(n)) for p, n in zip(pieces, places)],
        tokens=compared,
        whole=kept,
        segments_cut=len(whole) - len(kept),
        tokens_cut=len(whole.tokens) - len(kept.tokens),
    )


def compare(inference: Inference, params: Any, a: Side, b: Side) -> Comparison:
    """The cosines of two documents that were read for the same model.

    Raises:
      UserError: for more than PAIRS pairs of segments: memory grows with them.
    """
    if len(a.segments) * len(b.segments) > PAIRS:
        raise UserError(
            f"{len(a.segments):,} x {len(b.segments):,} passages: at most {PAIRS:,} pairs "
            "are compared; compare parts of the documents"
        )
    vectors = inference.segments(params, [a.tokens, b.tokens])
    parts = vectors[: len(a.segments)], vectors[len(a.segments) :]
    whole = [
        # What is compared is mostly what the document's vector is made of.
        dataclasses.replace(side.whole, vectors=part)
        if side.whole is side.tokens
        else side.whole
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


def _passages(document: Document) -> list[Segment]:
    """The sentences of a short text, passages of a long one.

    Title and headings are read only if there is nothing else: "Summary" would be the
    strongest link of many documents.
    """
    texts = tuple(Section("", section.text) for section in document.sections)
    bare = dataclasses.replace(document, title="", sections=texts)
    words = min(WORDS, len(full_text(bare).split()) // PASSAGES)
    return segments.passages(bare, words) or segments.sentences_of(document)


def _sections(
    side: Side, vectors: Float[np.ndarray, "p d"]
) -> Float[np.ndarray, "_ d"]:
    """The direction of each section's vector; its length does not matter."""
    found = np.zeros((len(side.headings), vectors.shape[1]), np.float32)
    numbers = [segment.section for segment in side.segments]
    np.add.at(found, numbers, vectors * side.tokens.lengths[:, None])
    return found
