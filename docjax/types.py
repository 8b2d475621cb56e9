"""The words of docjax as types, and the letters that name array axes.

A document is split into segments, segments become views, and a batch is flat in
segments: the transformer reads segments of all documents and views in length
order, and documents point into them.

Axis letters, the same in every annotation, docstring and einsum string:

  v  views                          d  model width
  b  documents                      m  candidates scored by one row (all devices)
  p  segments of one document       e  edges
  n  segments in a micro-batch      q  queries
  t  tokens of one segment          c  corpus documents
  h  heads                          k  width of one head
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Float

SIMILARITIES = ("cosine", "dot")  # of vectors


@dataclasses.dataclass(frozen=True)
class Section:
    heading: str
    text: str


@dataclasses.dataclass(frozen=True)
class Document:
    """A text with its structure; a text without sections is one without heading."""

    id: str
    sections: tuple[Section, ...]
    title: str = ""
    label: str | None = None
    split: str | None = None
    links: tuple[str, ...] = ()  # ids of other documents
    edges: tuple[tuple[int, int], ...] = ()  # pairs of section numbers
    query: str | None = None  # a short text that this document answers
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Segment:
    """The piece of a document that one transformer call reads."""

    text: str
    section: int  # number of the section it lies in


@dataclasses.dataclass(frozen=True, eq=False)
class Segments:
    """The tokens of a document's segments, special tokens included.

    tokens: all segments, one after the other; offsets: segment i is
    `tokens[offsets[i]:offsets[i + 1]]`; sections: the section of each segment;
    edges: pairs of section numbers that the user connected; vectors: of a segment
    encoder that is not trained, computed before; numbers: of each segment's document
    in the corpus, for objectives that read several documents in one piece.
    """

    tokens: np.ndarray  # int32 [sum of lengths]
    offsets: np.ndarray  # int64 [p + 1]
    sections: np.ndarray  # int32 [p]
    edges: np.ndarray  # int32 [e 2]
    vectors: np.ndarray | None = None  # float32 [p d]
    numbers: np.ndarray | None = None  # int64 [p]

    def __len__(self) -> int:
        return len(self.sections)

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def take(self, rows: np.ndarray) -> "Segments":
        """The segments at `rows`, in that order."""
        pieces = [self.tokens[self.offsets[i] : self.offsets[i + 1]] for i in rows]
        tokens = np.concatenate(pieces) if pieces else self.tokens[:0]
        offsets = np.concatenate([[0], np.cumsum([len(p) for p in pieces])])
        return Segments(
            tokens,
            offsets.astype(np.int64),
            self.sections[rows],
            self.edges,
            None if self.vectors is None else self.vectors[rows],
            None if self.numbers is None else self.numbers[rows],
        )


class Microbatch(NamedTuple):
    """Segments of similar length that the transformer reads in one call."""

    tokens: np.ndarray | jax.Array  # int32 [n t], padded at the end
    lengths: np.ndarray | jax.Array  # int32 [n], 0 for an unused row


class Batch(NamedTuple):
    """Documents of one step; `rows` points into the micro-batches laid end to end.

    A frozen segment encoder has no micro-batches but the vectors they would give.
    """

    microbatches: tuple[Microbatch, ...]
    rows: np.ndarray | jax.Array  # int32 [v b p]
    lengths: np.ndarray | jax.Array  # int32 [v b p], tokens of a segment, 0: none
    adjacency: np.ndarray | jax.Array | None  # bool [v b 1+p 1+p], row = receiver
    edges: (
        np.ndarray | jax.Array | None
    )  # int32 [v b e 2], (sender, receiver), -1: none
    labels: np.ndarray | jax.Array  # int32 [b], -1 without label
    vectors: np.ndarray | jax.Array | None = None  # float32 [micro-batches n d]


@runtime_checkable
class Views(Protocol):
    """Training-time versions of a document."""

    count: int  # v
    queries: tuple[int, ...]  # the views that are encoded as queries
    least_segments: int  # documents with fewer cannot be used

    def __call__(
        self, segments: Segments, generator: np.random.Generator
    ) -> tuple[Segments, ...]: ...


class Embeddings(NamedTuple):
    """Vectors of labelled documents, as a task reads them."""

    vectors: np.ndarray  # float32 [c d]
    labels: list[str]
    predictions: list[str] | None = None  # of a trained classification head


@runtime_checkable
class TaskData(Protocol):
    """The documents that tasks read, encoded: those of a run, or a user's files.

    A part is "train", "validation" or "test".
    """

    similarity: str  # "cosine" or "dot": how training compared vectors

    def labels(self, part: str) -> list[str]:
        """The labels of the part's labelled documents; nothing is encoded."""
        ...

    def labelled(self, part: str) -> Embeddings:
        """The labelled documents of a part."""
        ...

    def documents(self, part: str) -> Iterator[Document]:
        """The documents of a part, with their texts."""
        ...

    def missing(self, ids: Iterable[str]) -> list[str]:
        """The ids that no document has, sorted; nothing is encoded."""
        ...

    def vectors(self, ids: Sequence[str]) -> Float[np.ndarray, "c d"]:
        """The vectors of documents by id; UserError for one that is not there."""
        ...

    def queries(self, texts: Sequence[str]) -> Float[np.ndarray, "q d"]:
        """The vectors of queries."""
        ...

    def encode(
        self, documents: Iterable[Document]
    ) -> Iterator[tuple[str, Float[np.ndarray, " d"]]]:
        """The ids and vectors of other documents, in flat memory."""
        ...


@runtime_checkable
class Task(Protocol):
    """Vectors to metrics that a user cares about: a class of `docjax.tasks`.

    A task names the data it reads; `part` is what it is scored on, "test" or
    "validation".
    """

    def check(self, data: TaskData, part: str) -> None:
        """Raises UserError if the data are missing, before anything is encoded."""
        ...

    def __call__(self, data: TaskData, part: str) -> dict[str, float]: ...
