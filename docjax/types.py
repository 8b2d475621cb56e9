"""The words of docjax as types, the contracts of its parts, and the letters of axes.

A document is cut into units; an example names the documents that a loss compares; a
view is some of the units of one of them, and is cut into segments. A batch is flat in
segments: the transformer reads the segments of all examples and views in order of
length, and views point into them.

Axis letters, the same in every annotation, docstring and einsum string:

  v  views of an example            d  model width
  b  examples of a batch            m  candidates scored by one row (all devices)
  u  units of one document          e  edges
  p  segments of one view           q  queries
  n  segments in a micro-batch      c  corpus documents
  t  tokens of one segment          k  width of one head
  h  heads                          a  tokens of a segment to be predicted
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Float

SIMILARITIES = ("cosine", "dot")  # of vectors

Run = dict[str, dict[str, float]]  # query id -> document id -> score
Qrels = dict[str, dict[str, int]]  # query id -> document id -> gain
DOCUMENT, QUERY = "document", "query"  # the kinds of a view: how its vector is made


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
class Passage:
    """A piece of a document's text, and the number of the section it lies in."""

    text: str
    section: int


@dataclasses.dataclass(frozen=True, eq=False)
class Units:
    """The units of one document, or those of them that a view holds, as tokens.

    Attributes:
      tokens: all units, one after the other, without special tokens.
      offsets: unit i is `tokens[offsets[i]:offsets[i + 1]]`.
      sections: the section of each unit.
      edges: pairs of section numbers that the user connected.
      documents: the row of each unit's document in its corpus, where there is one.
      vectors: of each unit, where a segment encoder that is not trained has read it.
    """

    tokens: np.ndarray  # int32 [sum of lengths]
    offsets: np.ndarray  # int64 [u + 1]
    sections: np.ndarray  # int32 [u]
    edges: np.ndarray  # int32 [e 2]
    documents: np.ndarray | None = None  # int64 [u]
    vectors: np.ndarray | None = None  # float32 [u d]

    def __len__(self) -> int:
        return len(self.sections)

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def take(self, rows: np.ndarray) -> "Units":
        """The units at `rows`, in that order."""
        tokens, offsets = _taken(self.tokens, self.offsets, rows)
        return Units(
            tokens,
            offsets,
            self.sections[rows],
            self.edges,
            None if self.documents is None else self.documents[rows],
            None if self.vectors is None else self.vectors[rows],
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Segments:
    """The segments of one view or document as tokens, special tokens included.

    Attributes:
      tokens, offsets, edges, vectors: as those of `Units`, by segment.
      places: of each segment its section, and its number inside that section.
    """

    tokens: np.ndarray  # int32 [sum of lengths]
    offsets: np.ndarray  # int64 [p + 1]
    places: np.ndarray  # int32 [p 2]
    edges: np.ndarray  # int32 [e 2]
    vectors: np.ndarray | None = None  # float32 [p d]

    def __len__(self) -> int:
        return len(self.places)

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    @property
    def sections(self) -> np.ndarray:
        return self.places[:, 0]

    def first(self, most: int | None) -> "Segments":
        """The first `most` segments; None: all."""
        if not most or len(self) <= most:
            return self
        return Segments(
            self.tokens[: self.offsets[most]],
            self.offsets[: most + 1],
            self.places[:most],
            self.edges,
            None if self.vectors is None else self.vectors[:most],
        )


class Frame(NamedTuple):
    """What surrounds the text of a segment: special tokens, and the limit of both."""

    prefix: np.ndarray  # int32 []
    suffix: np.ndarray  # int32 []
    limit: int  # tokens of a segment, special tokens included

    @property
    def special(self) -> int:
        return len(self.prefix) + len(self.suffix)

    @property
    def room(self) -> int:
        """Tokens of text in a segment."""
        return self.limit - self.special


class ReadLimits(NamedTuple):
    """What a model reads at most: tokens of a segment and of a query, special tokens
    included, and segments of a document (None: all)."""

    segment_tokens: int
    query_tokens: int
    inference_segments: int | None

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> "ReadLimits":
        """Those among the limits of a config or of docjax.json."""
        return cls(*(node[name] for name in cls._fields))


class Microbatch(NamedTuple):
    """Segments of similar length that the transformer reads in one call."""

    tokens: np.ndarray | jax.Array  # int32 [n t], padded at the end
    lengths: np.ndarray | jax.Array  # int32 [n], 0 for an unused row
    places: np.ndarray | jax.Array  # int32 [n 2], section and number inside it


class Masked(NamedTuple):
    """A micro-batch some of whose tokens are to be predicted; no document reads it."""

    microbatch: Microbatch  # with the masked tokens
    positions: np.ndarray | jax.Array  # int32 [n a], of the tokens to predict
    answers: np.ndarray | jax.Array  # int32 [n a], -1 behind the last


class Graphs(NamedTuple):
    """Graphs over views: as matrices, as edges, or none."""

    adjacency: np.ndarray | jax.Array | None = None  # bool [... 1+p 1+p], row=receiver
    edges: np.ndarray | jax.Array | None = None  # int32 [... e 2], (sender, receiver)


class Targets(NamedTuple):
    """What an objective knows of the examples beside their vectors.

    `related[i, j]` says that candidate j answers row i too, so that it is no negative
    of it. Candidates are the documents of the batch: m = b for examples of one slot;
    for a query and further slots, those of slot 1, then those of slot 2, and so on.
    """

    labels: np.ndarray | jax.Array  # int32 [b], -1 without label
    related: np.ndarray | jax.Array | None = None  # bool [b m]


class Batch(NamedTuple):
    """Examples of one step; `rows` points into the micro-batches laid end to end.

    A segment encoder that is not trained has no micro-batches but the vectors they
    would give.
    """

    microbatches: tuple[Microbatch, ...]
    rows: np.ndarray | jax.Array  # int32 [v b p]
    lengths: np.ndarray | jax.Array  # int32 [v b p], tokens of a segment, 0: none
    places: np.ndarray | jax.Array  # int32 [v b p 2]
    graphs: Graphs
    targets: Targets
    towers: tuple[int, ...] = ()  # the segment encoder that reads each micro-batch
    masked: tuple[Masked, ...] = ()
    answers: np.ndarray | jax.Array | float = 0.0  # [], tokens to predict
    vectors: np.ndarray | jax.Array | None = None  # float32 [micro-batches n d]
    cut: int | None = (
        None  # tokens beyond `limits.training_segments`; not on the device
    )


class Embeddings(NamedTuple):
    """Vectors of labelled documents, as a task reads them."""

    vectors: np.ndarray  # float32 [c d]
    labels: list[str]
    predictions: list[str] | None = None  # of a trained classification head


@runtime_checkable
class UnitCutter(Protocol):
    """A document's units, in order: a class of `docjax.data.units`."""

    readable: bool  # a unit is a piece that a reader would look at by itself

    def __call__(self, document: Document) -> list[Passage]: ...


@runtime_checkable
class SegmentCutter(Protocol):
    """Which tokens of some units share a segment: a class of `docjax.data.segments`.

    No segment has more than `room` tokens of text, and no token is lost.
    """

    one_each: bool  # every unit is one segment, so that its vector can be kept

    def spans(
        self, lengths: Sequence[int], sections: Sequence[int], room: int
    ) -> Iterable[tuple[int, int, int]]:
        """First token, end and section of each segment, from those of the units."""
        ...


@runtime_checkable
class ExampleMaker(Protocol):
    """Which documents a loss compares: a class of `docjax.data.examples` or
    `docjax.retrieval.judged_queries`."""

    kinds: tuple[str, ...]  # of each slot, DOCUMENT or QUERY

    def files(self) -> tuple[Path, ...]:
        """The files that the examples depend on; a run goes on with the same bytes.

        Raises UserError if a file is missing, before the corpus is read.
        """
        ...

    def queries(self, source: Callable[[], Iterator[Document]]) -> Iterator[Document]:
        """The queries as documents, for a corpus of their own; none without a slot."""
        ...

    def among(self, known: Any) -> Any:
        """The `docjax.data.examples.Examples` of what `Known` there holds."""
        ...


@runtime_checkable
class Views(Protocol):
    """Training-time versions of a document: a class of `docjax.views`."""

    kinds: tuple[str, ...]  # of each view, DOCUMENT or QUERY
    least_units: int  # documents with fewer cannot be used
    many_documents: bool  # several documents may come in one piece

    def __call__(
        self, units: Units, generator: np.random.Generator
    ) -> tuple[Units, ...]: ...


@runtime_checkable
class ViewMaker(Protocol):
    """Views as a config names them: before they know the words of a corpus."""

    kinds: tuple[str, ...]
    least_units: int
    many_documents: bool

    def files(self) -> tuple[Path, ...]:
        """As those of `ExampleMaker`."""
        ...

    def fitted(self, tokenizer: Any, corpus: Any, documents: Any = None) -> Views:
        """The views for the words of a corpus, of those documents or of all."""
        ...


@runtime_checkable
class SegmentEncoder(Protocol):
    """Tokens of segments to their vectors: a Flax module of `docjax.encoders`."""

    has_towers: bool  # there are several, and each view says which one reads it
    masked_lm: bool  # it has `token_loss`: it predicts masked tokens

    def __call__(
        self, tokens: Any, lengths: Any, places: Any, keys: Any = None
    ) -> Any: ...


@runtime_checkable
class DocumentEncoder(Protocol):
    """Segment vectors to document vectors: a Flax module of `docjax.encoders`.

    `views` sees all views of an example; by default each view is read alone.
    """

    sparse: bool  # graphs are read as edges
    attends: bool  # it has attention to explain

    def __call__(
        self, vectors: Any, lengths: Any, places: Any, graphs: Graphs
    ) -> Any: ...

    def query(self, vectors: Any) -> Any: ...

    def views(
        self,
        vectors: Any,
        lengths: Any,
        places: Any,
        graphs: Graphs,
        keys: Any = None,  # of the dropout of each example
    ) -> Any: ...


@runtime_checkable
class Objective(Protocol):
    """A loss of the views' vectors [v b d], and metrics: of `docjax.objectives`."""

    def __call__(
        self, vectors: Any, targets: Targets
    ) -> tuple[jax.Array, dict[str, jax.Array]]: ...


@runtime_checkable
class ObjectiveWithMemory(Protocol):
    """A loss that remembers earlier batches; `State.memory` holds what it remembers."""

    def begin(self, examples: int, width: int) -> Any:
        """The memory before the first batch, of so many examples and numbers."""
        ...

    def __call__(
        self, vectors: Any, targets: Targets, memory: Any
    ) -> tuple[jax.Array, dict[str, jax.Array], Any]: ...


@runtime_checkable
class TaskData(Protocol):
    """The documents that tasks read, encoded: those of a run, or a user's files.

    A part is "train", "validation" or "test".
    """

    @property
    def similarity(self) -> str:
        """How training compared vectors: "cosine" or "dot"."""
        ...

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


class State(NamedTuple):
    """What training changes, and a checkpoint holds."""

    step: jax.Array  # [] steps taken
    params: Any  # nested dict of arrays
    optimizer: Any
    memory: Any = ()  # what is kept between steps and not trained by gradient


@runtime_checkable
class RowOptimizer(Protocol):
    """Updates the rows of tables that a gradient names: of `docjax.training.rows`."""

    def init(self, table: Any) -> Any: ...

    def update(self, *arguments: Any) -> Any: ...


@runtime_checkable
class Trainer(Protocol):
    """One way to train: made with all it needs, and driven by `training/loop.py`."""

    steps: int
    dataset: Any  # grain.MapDataset of (batch, rows of its examples) by step

    @property
    def epoch_steps(self) -> int: ...

    def begin(self, params: Any) -> State: ...

    def put(self, batch: Any) -> Any: ...

    def step(
        self, state: State, batch: Any, key: jax.Array
    ) -> tuple[State, dict[str, jax.Array]]: ...

    def measure(self, batch: Any) -> dict[str, int]:
        """Counts of a batch that add up over steps: tokens, places computed, and
        perhaps tokens cut."""
        ...

    def documents(self, step: int) -> list[str]:
        """The ids of what a step reads."""
        ...


GraphBuilder = Callable[[int, np.ndarray, np.ndarray], Any]  # -> jraph.GraphsTuple


def _taken(
    tokens: np.ndarray, offsets: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The pieces of `tokens` at `rows` laid end to end, and their offsets."""
    pieces = [tokens[offsets[i] : offsets[i + 1]] for i in rows]
    ends = np.cumsum([0, *map(len, pieces)]).astype(np.int64)
    return np.concatenate(pieces) if pieces else tokens[:0], ends
