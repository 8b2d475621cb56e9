"""The words of docjax as types, the contracts of its parts, and the letters of axes.

A document is cut into units. An example names the documents that a loss compares. A
view is a choice of units of one document, and is cut into segments. A batch is flat in
segments: the transformer reads the segments of all examples and views in order of
length, and views point to their segments.

Units, segments, graphs and document encoders may have `exported_as`: the function or
class in the files of an exported folder that computes the same
(`docjax/export/forms.py`). `docjax export` refuses a model whose part lacks it.

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

SIMILARITIES = ("cosine", "dot")  # similarities of two vectors

Reader = Callable[[float], Iterator["Document"]]  # of max_bad_fraction
Run = dict[str, dict[str, float]]  # query id -> document id -> score
Qrels = dict[str, dict[str, int]]  # query id -> document id -> gain
DOCUMENT, QUERY = "document", "query"  # the kinds of a view: how its vector is made


@dataclasses.dataclass(frozen=True)
class Section:
    heading: str
    text: str


@dataclasses.dataclass(frozen=True)
class Document:
    """A text with its structure; a text without sections is one section."""

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
    """A piece of a document's text, and the number of its section."""

    text: str
    section: int


@dataclasses.dataclass(frozen=True, eq=False)
class Units:
    """The units of one document or of one view, as tokens.

    Attributes:
      tokens: all units, one after the other, without special tokens.
      offsets: unit i is `tokens[offsets[i]:offsets[i + 1]]`.
      sections: the section of each unit.
      edges: pairs of section numbers that the user connected.
      documents: the corpus row of each unit's document; None without a corpus.
      vectors: the vector of each unit from a frozen segment encoder, or None.
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
      tokens, offsets, edges, vectors: as in `Units`, by segment.
      places: the section of each segment, and its number inside the section.
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

    def take(self, rows: np.ndarray) -> "Segments":
        """The segments at `rows`, in that order, each with its place."""
        tokens, offsets = _taken(self.tokens, self.offsets, rows)
        vectors = None if self.vectors is None else self.vectors[rows]
        return Segments(tokens, offsets, self.places[rows], self.edges, vectors)

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


Order = Callable[[Segments], Segments]  # the segments of a document in another order


class Frame(NamedTuple):
    """The special tokens around the text of a segment, and the limit of a segment."""

    prefix: np.ndarray  # int32 []
    suffix: np.ndarray  # int32 []
    limit: int  # tokens of a segment, special tokens included

    @property
    def special(self) -> int:
        return len(self.prefix) + len(self.suffix)

    @property
    def room(self) -> int:
        """The number of text tokens that fit a segment."""
        return self.limit - self.special


class ReadLimits(NamedTuple):
    """The most that a model reads: tokens of a segment and of a query, special tokens
    included, and segments of a document (None: all)."""

    segment_tokens: int
    query_tokens: int
    inference_segments: int | None

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> "ReadLimits":
        """The limits from the node `limits` of a config or of docjax.json."""
        return cls(*(node[name] for name in cls._fields))

    @property
    def query_segment(self) -> int:
        """The most tokens of a query that the model reads: a query is one segment."""
        return min(self.query_tokens, self.segment_tokens)


class Microbatch(NamedTuple):
    """Segments of similar length that the transformer reads in one call."""

    tokens: np.ndarray | jax.Array  # int32 [n t], padded at the end
    lengths: np.ndarray | jax.Array  # int32 [n], 0 for an unused row
    places: np.ndarray | jax.Array  # int32 [n 2], section and number in the section


class Masked(NamedTuple):
    """A micro-batch with masked tokens to predict; no document reads its vectors."""

    microbatch: Microbatch  # with the masked tokens
    positions: np.ndarray | jax.Array  # int32 [n a], of the tokens to predict
    answers: np.ndarray | jax.Array  # int32 [n a], token ids, -1 after the last


class Graphs(NamedTuple):
    """Graphs over views: as matrices, as edges, or none."""

    adjacency: np.ndarray | jax.Array | None = None  # bool [... 1+p 1+p], row=receiver
    edges: np.ndarray | jax.Array | None = None  # int32 [... e 2], (sender, receiver)


class Targets(NamedTuple):
    """The facts about the examples that an objective reads beside their vectors.

    If `related[i, j]` is true, candidate j also answers row i and is not a negative of
    row i. Candidates are the documents of the batch: m = b for examples of one slot;
    for a query and further slots, first the documents of slot 1, then of slot 2, ...
    """

    # int32 [b], -1 without label; of pairs with labels, 1 if similar, else 0.
    labels: np.ndarray | jax.Array
    related: np.ndarray | jax.Array | None = None  # bool [b m]
    teacher: np.ndarray | jax.Array | None = None  # float32 [b f], of `Distillation`


class Batch(NamedTuple):
    """Examples of one step; `rows` points into the concatenated micro-batches.

    For a frozen segment encoder, `vectors` replaces the micro-batches.
    """

    microbatches: tuple[Microbatch, ...]
    rows: np.ndarray | jax.Array  # int32 [v b p]
    lengths: np.ndarray | jax.Array  # int32 [v b p], tokens; 0 without a segment
    places: np.ndarray | jax.Array  # int32 [v b p 2]
    graphs: Graphs
    targets: Targets
    towers: tuple[int, ...] = ()  # the tower that reads each micro-batch
    masked: tuple[Masked, ...] = ()
    answers: np.ndarray | jax.Array | float = 0.0  # [], number of tokens to predict
    vectors: np.ndarray | jax.Array | None = None  # float32 [micro-batches n d]
    # The tokens beyond the limits of a view; a number on the host.
    cut: int | None = None


class Encoded(NamedTuple):
    """A document's vector and, if they were asked for, those of its segments."""

    id: str
    vector: np.ndarray  # float32 [d]
    passages: np.ndarray | None = None  # float32 [p d], to compare with queries


class TokenAttention(NamedTuple):
    """What the first token of a segment attends to in the last layer.

    The rest of the attention goes to special tokens.
    """

    weights: np.ndarray  # float32 [t], mean over the heads, of the tokens of the text
    spans: np.ndarray  # int64 [t 2], the characters of each token, from and to


class Embeddings(NamedTuple):
    """The vectors of labelled documents that a task reads."""

    vectors: np.ndarray  # float32 [c d]
    labels: list[str]
    predictions: list[str] | None = None  # from a trained classification head


@runtime_checkable
class UnitCutter(Protocol):
    """Cuts a document into units, in order: a class of `docjax.data.units`."""

    readable: bool  # a reader can understand a unit by itself

    def __call__(self, document: Document) -> list[Passage]: ...


@runtime_checkable
class SegmentCutter(Protocol):
    """Decides which tokens share a segment: a class of `docjax.data.segments`.

    No segment has more than `room` tokens of text, and no token is lost.
    """

    one_each: bool  # every unit is one segment, so the unit's vector can be stored

    def spans(
        self, lengths: Sequence[int], sections: Sequence[int], room: int
    ) -> Iterable[tuple[int, int, int]]:
        """The first token, end and section of each segment.

        `lengths` and `sections` describe the units.
        """
        ...


@runtime_checkable
class ExampleMaker(Protocol):
    """Chooses the documents that a loss compares: a class of `docjax.data.examples` or
    `docjax.retrieval.judged_queries`."""

    kinds: tuple[str, ...]  # DOCUMENT or QUERY for each slot

    def files(self) -> tuple[Path, ...]:
        """The files that the examples depend on; a resumed run needs the same bytes.

        Raises UserError if a file is missing, before the corpus is read.
        """
        ...

    def queries(self, source: Callable[[], Iterator[Document]]) -> Iterator[Document]:
        """The queries as documents, for their own corpus; none without a query slot."""
        ...

    def among(self, known: Any) -> Any:
        """The `docjax.data.examples.Examples` among the documents of `Known` there."""
        ...


@runtime_checkable
class Views(Protocol):
    """Makes training-time versions of a document: a class of `docjax.views`."""

    kinds: tuple[str, ...]  # DOCUMENT or QUERY for each view
    least_units: int  # documents with fewer units are not used
    many_documents: bool  # one call may take the units of several documents

    def __call__(
        self, units: Units, generator: np.random.Generator
    ) -> tuple[Units, ...]: ...


@runtime_checkable
class ViewMaker(Protocol):
    """Views as a config names them, before `fitted` gives them a corpus."""

    kinds: tuple[str, ...]
    least_units: int
    many_documents: bool
    halve_from: int | None  # training reads a longer document of one unit as two units

    def files(self) -> tuple[Path, ...]:
        """The files that the views depend on, as in `ExampleMaker`."""
        ...

    def fitted(self, tokenizer: Any, corpus: Any, documents: Any = None) -> Views:
        """The views for the words of a corpus; `documents` None means all documents."""
        ...


@runtime_checkable
class SegmentEncoder(Protocol):
    """Tokens of segments to their vectors: a Flax module of `docjax.encoders`.

    `docjax.encoders.segment_defaults.SegmentDefaults` has all but `vocabulary` and the
    call, for an encoder that does nothing special.
    """

    has_towers: bool  # there are several towers, and each view has its tower
    masked_lm: bool  # the encoder predicts masked tokens with `token_loss`
    reads_prompts: bool  # the words before a text change how the text is read
    shows_attention: bool  # `encoders/first_token.py` can read the last layer
    averages_words: bool  # a vector is the mean of rows of the parameter `words`
    words: int  # numbers at the end of a vector, of fitted word vectors; 0: none

    @property
    def vocabulary(self) -> int:
        """Rows of the table of tokens."""
        ...

    @property
    def place_rows(self) -> tuple[int, int]:
        """The rows of the tables that embed a segment's section and its number in the
        section; 0 without a table."""
        ...

    def check_training(self, tokens: int) -> None:
        """Raises UserError unless segments of up to `tokens` tokens can be trained."""
        ...

    def in_dtype(self, dtype: str) -> "SegmentEncoder":
        """The encoder that computes in "float32" or "bfloat16".

        Raises UserError for a type that it does not have.
        """
        ...

    def __call__(
        self, tokens: Any, lengths: Any, places: Any, keys: Any = None
    ) -> Any: ...


@runtime_checkable
class DocumentEncoder(Protocol):
    """Segment vectors to document vectors: a Flax module of `docjax.encoders`.

    `views` sees all views of an example; `EachViewAlone` encodes each view separately.
    """

    sparse: bool  # the encoder reads graphs as edges
    attends: bool  # the encoder has attention to explain

    @property
    def joins_views(self) -> bool:
        """Whether the vector of a view depends on the other views of the example.

        Then the encoder has `cross_attention`, which `docjax compare` shows.
        """
        ...

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
        keys: Any = None,  # a dropout key per example
    ) -> Any: ...


@runtime_checkable
class Objective(Protocol):
    """A loss of the views' vectors [v b d], with metrics: from `docjax.objectives`."""

    def __call__(
        self, vectors: Any, targets: Targets
    ) -> tuple[jax.Array, dict[str, jax.Array]]: ...


@runtime_checkable
class ObjectiveWithMemory(Protocol):
    """A loss that remembers earlier batches; `State.memory` holds what it remembers."""

    @property
    def momentum(self) -> float | None:
        """How slowly a second encoder follows the trained one; None: there is none."""
        ...

    def begin(self, examples: int, width: int) -> Any:
        """The memory before the first batch: `examples` vectors of `width` numbers."""
        ...

    def __call__(
        self, vectors: Any, targets: Targets, memory: Any
    ) -> tuple[jax.Array, dict[str, jax.Array], Any]: ...


@runtime_checkable
class ObjectiveWithTeacher(Protocol):
    """A loss that reads `Targets.teacher`, made as `docjax/run/teacher.py` says."""

    neighbours: int
    smoothing: float

    def __call__(
        self, vectors: Any, targets: Targets
    ) -> tuple[jax.Array, dict[str, jax.Array]]: ...


@runtime_checkable
class TaskData(Protocol):
    """The encoded documents of a run or of a user's files, for tasks.

    A part is "train", "validation" or "test".
    """

    @property
    def similarity(self) -> str:
        """The similarity that training used: "cosine" or "dot"."""
        ...

    def labels(self, part: str) -> list[str]:
        """The labels of the part's labelled documents, without encoding."""
        ...

    def labelled(self, part: str) -> Embeddings:
        """The labelled documents of a part."""
        ...

    def documents(self, part: str) -> Iterator[Document]:
        """The documents of a part, with their texts."""
        ...

    def sample(self, part: str, most: int | None, seed: int) -> list[Document]:
        """At most `most` documents of a part, in their order (None: all). Raises
        UserError if there is none."""
        ...

    def missing(self, ids: Iterable[str]) -> list[str]:
        """The ids that no document has, sorted, without encoding."""
        ...

    def vectors(self, ids: Sequence[str]) -> Float[np.ndarray, "c d"]:
        """The vectors of documents by id. Raises UserError for an unknown id."""
        ...

    def shuffled(
        self, ids: Sequence[str], pieces: str, seed: int
    ) -> Float[np.ndarray, "c d"]:
        """The vectors of documents by id, whose pieces, "sections" or "segments", are
        in random order (`docjax.data.shuffled.Shuffled`). Raises UserError for an
        unknown id, and where no document has two pieces."""
        ...

    def queries(self, texts: Sequence[str]) -> Float[np.ndarray, "q d"]:
        """The vectors of queries."""
        ...

    def encode(
        self, documents: Iterable[Document], *, passages: bool = False
    ) -> Iterator[Encoded]:
        """The vectors of new documents and `passages`, in constant memory."""
        ...

    def token_attention(self) -> Callable[[str], "TokenAttention"]:
        """A function that gives the attention inside a text. Raises UserError for a
        model without such attention."""
        ...

    def masked_tokens(
        self, part: str, rate: float, seed: int
    ) -> tuple[float, float, int]:
        """The summed cross-entropy of masked tokens of a part, the number of right
        predictions, and the number of masked tokens: a share `rate` of all tokens."""
        ...

    def of_task(self, name: str) -> "TaskData":
        """The same data; `keep` writes to the folder of the task called `name`."""
        ...

    def keep(self, name: str, text: str) -> None:
        """Keeps a file of a task beside its scores, if there is a place for it."""
        ...


@runtime_checkable
class Task(Protocol):
    """Vectors to metrics that a user cares about: a class of `docjax.tasks`.

    A task names the data that it reads. `part` is the scored part, "test" or
    "validation".
    """

    def check(self, data: TaskData, part: str) -> None:
        """Raises UserError if the data are missing, before anything is encoded."""
        ...

    def __call__(self, data: TaskData, part: str) -> dict[str, float]: ...


class State(NamedTuple):
    """Everything that training changes and a checkpoint holds."""

    step: jax.Array  # [] steps taken
    params: Any  # nested dict of arrays
    optimizer: Any
    memory: Any = ()  # kept between steps, but not trained by gradient


@runtime_checkable
class RowOptimizer(Protocol):
    """Updates the table rows that a gradient names: from `docjax.training.rows`."""

    def init(self, table: Any) -> Any: ...

    def update(self, *arguments: Any) -> Any: ...


@runtime_checkable
class Trainer(Protocol):
    """One way to train; `training/loop.py` calls the methods."""

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
        """Counts of a batch that the loop sums over steps: tokens, computed places,
        and cut tokens if there are any."""
        ...

    def documents(self, step: int) -> list[str]:
        """The ids of the documents and queries that a step reads."""
        ...


GraphBuilder = Callable[[int, np.ndarray, np.ndarray], Any]  # -> jraph.GraphsTuple


def _taken(
    tokens: np.ndarray, offsets: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The pieces of `tokens` at `rows`, concatenated, and their offsets."""
    pieces = [tokens[offsets[i] : offsets[i + 1]] for i in rows]
    ends = np.cumsum([0, *map(len, pieces)]).astype(np.int64)
    return np.concatenate(pieces) if pieces else tokens[:0], ends
