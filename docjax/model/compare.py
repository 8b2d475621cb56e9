"""Why two documents are similar: by document, by section and by segment.

The vectors of one model are compared. `docjax.explain.compare_page` shows the result.
"""

import dataclasses
import html
import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from docjax.errors import UserError
from docjax.model.cosines import cosines, unit
from docjax.model.hits import one_line, shortened
from docjax.model.inference import Inference
from docjax.model.inputs import check_name, check_whole
from docjax.model.sides import Side
from docjax.types import Segments

SHOWN = 4  # links in the representation of a comparison
PAIRS = 1 << 24  # the most pairs of segments to compare; memory grows with them


@dataclasses.dataclass(frozen=True, eq=False)
class CrossAttention:
    """How the chunks of document `a` attend to those of `b` (CoLDE, section 4.3).

    weights: of the attention, the mean over the heads; each row sums to 1. cosines: of
    the chunks of both documents, each after attention to the other document.
    """

    weights: Float[np.ndarray, "p q"]
    cosines: Float[np.ndarray, "p q"]

    @property
    def weighted(self) -> Float[np.ndarray, "p q"]:
        """The cosine of two chunks times the weight of their attention."""
        return self.weights * self.cosines


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Cosines of two documents, and of their parts.

    similarity: the cosine of the documents' vectors from `encode`. sections: cosines of
    the sections, each with the vector of a document with this section alone; for a model
    with a graph, the mean of its segments' vectors weighted by tokens. segments: cosines
    of the segments' vectors. Word vectors of a segment have the share that they have in
    the document. chunks: for a model with chunk attention, of the segments that
    the model reads (`Side.pieces`). Rows belong to `a` and columns to `b`.
    """

    similarity: float
    sections: Float[np.ndarray, "_ _"]
    segments: Float[np.ndarray, "_ _"]
    a: Side
    b: Side
    chunks: CrossAttention | None = None

    def html(self) -> str:
        """The page that shows both texts and their links, as `docjax compare --html`
        writes it; a single file that loads nothing."""
        return _page().html(self)

    def links(self, top: int = 10, kind: str = "segments") -> list[dict[str, Any]]:
        """The `top` strongest links, each with `similarity`, and the texts `a` and `b`.

        Args:
          kind: "segments", or "sections", whose texts are headings.

        Raises:
          UserError: for another kind, or a `top` below 1.
        """
        check_name("kind", kind, ("segments", "sections"))
        check_whole("top", top, optional=False)
        return _page().link_records(self, kind, top)

    def __repr__(self) -> str:
        lines = [f"Comparison: similarity {self.similarity:.3f}"]
        for link in self.links(SHOWN):
            a, b = (shortened(one_line(link[name]), 32) for name in "ab")
            lines.append(f"  {link['similarity']:.3f}  {a}  ~  {b}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The page in a frame, so that its style stays its own."""
        page = html.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" width="100%" height="600"></iframe>'


@dataclasses.dataclass(frozen=True, eq=False)
class Similarities:
    """Cosines of all documents of a set, of all their sections and of all segments.

    Rows and columns are those of `sides`, one document after the other, as in
    `Comparison`. chunks: of the segments that the model reads (`Side.pieces`), if they
    are others than those of `segments`, and a document has several.
    """

    documents: Float[np.ndarray, "c c"]
    sections: Float[np.ndarray, "_ _"]
    segments: Float[np.ndarray, "_ _"]
    sides: list[Side]
    chunks: Float[np.ndarray, "_ _"] | None = None

    def __repr__(self) -> str:
        titles = [shortened(one_line(side.title), 40) for side in self.sides]
        pairs = self.documents - 2 * np.eye(len(titles))
        a, b = np.unravel_index(pairs.argmax(), pairs.shape)
        return (
            f"Similarities of {len(titles)} documents, {len(self.sections)} sections, "
            f"{len(self.segments)} segments\n"
            f"  {pairs[a, b]:.3f}  {titles[a]}  ~  {titles[b]}"
        )


def compare(inference: Inference, params: Any, a: Side, b: Side) -> Comparison:
    """The cosines of two documents that `read` prepared for the same model."""
    sides = _encoded(inference, params, [a, b])
    (first, second), sections, segments = _vectors(inference, params, sides)
    chunks = None
    if inference.attends_to_other:
        both = [side.whole.vectors for side in sides]
        of_a, weights = inference.cross_attention(params, *both)
        of_b, _ = inference.cross_attention(params, *reversed(both))
        chunks = CrossAttention(weights, cosines(of_a, of_b))
    return Comparison(
        similarity=float(cosines(first[None], second[None])[0, 0]),
        sections=cosines(*sections),
        segments=cosines(*segments),
        a=a,
        b=b,
        chunks=chunks,
    )


def similarities(
    inference: Inference, params: Any, sides: Sequence[Side]
) -> Similarities:
    """The cosines of documents that `read` prepared for the same model."""
    sides = _encoded(inference, params, sides)
    vectors = _vectors(inference, params, sides)
    whole = [np.stack(vectors[0]), *map(np.concatenate, vectors[1:])]
    of_sides = [_with_shares(inference, params, side.whole.vectors) for side in sides]
    chunks = None
    if not all(side.same for side in sides) and max(map(len, of_sides)) > 1:
        chunks = cosines(*(np.concatenate(of_sides),) * 2)
    parts = (cosines(part, part) for part in whole)
    return Similarities(*parts, sides=list(sides), chunks=chunks)


def _encoded(inference: Inference, params: Any, sides: Sequence[Side]) -> list[Side]:
    """The sides with the vectors of their segments; all sides are read together."""

    def with_vectors(parts: Sequence[Segments]) -> list[Segments]:
        vectors = inference.segments(params, parts)
        both = zip(parts, vectors, strict=True)
        return [dataclasses.replace(part, vectors=each) for part, each in both]

    whole = with_vectors([side.whole for side in sides])
    # If the segments are the same, they are not encoded again.
    same = all(side.same for side in sides)
    tokens = whole if same else with_vectors([side.tokens for side in sides])
    return [
        dataclasses.replace(side, whole=w, tokens=t)
        for side, w, t in zip(sides, whole, tokens, strict=True)
    ]


def _vectors(
    inference: Inference, params: Any, sides: Sequence[Side]
) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """The vector of each document, and those of its sections and of its segments."""
    documents = list(inference.encode(params, [side.whole for side in sides]))
    segments = [_with_shares(inference, params, side.tokens.vectors) for side in sides]
    if inference.graph is None:
        sections = [_sections(inference, params, side) for side in sides]
    else:
        sections = [_sums(*both) for both in zip(sides, segments, strict=True)]
    return documents, sections, segments


def _with_shares(
    inference: Inference, params: Any, vectors: Float[np.ndarray, "p d"]
) -> Float[np.ndarray, "p d"]:
    """Segment vectors whose words have the share that `FromMean` gives them."""
    share = params.get("document", {}).get("share")
    if share is None:
        return vectors
    words = inference.encoder.document.words
    known, of_words = unit(vectors[:, :-words]), unit(vectors[:, -words:])
    share = np.asarray(share)
    parts = [known * (1 - share) ** 0.5, of_words * share**0.5]
    return np.concatenate(parts, axis=1)


def _page() -> Any:
    """The module that draws comparisons; it imports this one."""
    return importlib.import_module("docjax.explain.compare_page")


def check_pairs(sides: Sequence[Side], most: int) -> None:
    """Raises UserError for more than `most` pairs of segments."""
    if math.prod(len(side.segments) for side in sides) > most:
        a, b = (f"{len(side.segments):,}" for side in sides)
        raise UserError(
            f"{a} x {b} passages: at most {most:,} pairs are compared; give parts of "
            "the documents"
        )


def check_all(sides: Sequence[Side], most: int) -> None:
    """Raises UserError for less than two documents, or more than `most` cosines."""
    count = sum(len(side.segments) for side in sides)
    if len(sides) < 2 or count**2 > most:
        raise UserError(
            f"{len(sides)} documents with {count:,} passages: give at least 2 documents "
            f"with at most {math.isqrt(most):,} passages together"
        )


def _sections(
    inference: Inference, params: Any, side: Side
) -> Float[np.ndarray, "_ d"]:
    """The vector of each section, as of a document with this section alone."""
    if side.alone:
        return np.stack(list(inference.encode(params, side.alone)))
    numbers = np.array([segment.section for segment in side.segments])
    rows = (np.flatnonzero(numbers == n) for n in range(len(side.headings)))
    return np.stack(list(inference.encode(params, map(side.tokens.take, rows))))


def _sums(side: Side, vectors: Float[np.ndarray, "p d"]) -> Float[np.ndarray, "_ d"]:
    """The sum of each section's segment vectors, weighted by tokens.

    A cosine ignores the length, so that the sum stands for the mean.
    """
    sums = np.zeros((len(side.headings), vectors.shape[1]), np.float32)
    numbers = [segment.section for segment in side.segments]
    np.add.at(sums, numbers, vectors * side.tokens.lengths[:, None])
    return sums
