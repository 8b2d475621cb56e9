"""The words of docjax as types, the contracts of its parts, and the letters of axes.

A document is cut into units. An example names the documents that a loss compares. A
view is a choice of units of one document, and is cut into segments. A batch is flat in
segments: the transformer reads the segments of all examples and views in order of
length, and views point to their segments.

Units, segments, graphs and document encoders may have `exported_as`: the function or
class in the files of an exported folder that computes the same
(`docjax/export/write.py`). `docjax export` refuses a model whose part lacks it.

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
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Float, Int

SIMILARITIES = ("cosine", "dot")  # similarities of two vectors

Reader = Callable[[float], Iterator["Document"]]  # of max_bad_fraction
Arrays = np.ndarray | jax.Array
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
        documents = None if self.documents is None else self.documents[rows]
        taken, sections = _taken(self, rows), self.sections[rows]
        return dataclasses.replace(
            self, **taken, sections=sections, documents=documents
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
        return dataclasses.replace(self, **_taken(self, rows), places=self.places[rows])

    def first(self, most: int | None) -> "Segments":
        """The first `most` segments; None: all."""
        if not most or len(self) <= most:
            return self
        return self.take(np.arange(most))


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
    """The most that a model reads."""

    segment_tokens: int  # special tokens included
    query_tokens: int
    inference_segments: int | None  # of a document; None: all

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

    tokens: Arrays  # int32 [n t], padded at the end
    lengths: Arrays  # int32 [n], 0 for an unused row
    places: Arrays  # int32 [n 2], section and number in the section


class Masked(NamedTuple):
    """A micro-batch with masked tokens to predict; no document reads its vectors."""

    microbatch: Microbatch  # with the masked tokens
    positions: Arrays  # int32 [n a], of the tokens to predict
    answers: Arrays  # int32 [n a], token ids, -1 after the last


class Graphs(NamedTuple):
    """Graphs over views: as matrices, as edges, or none."""

    adjacency: Arrays | None = None  # bool [... 1+p 1+p], row=receiver
    edges: Arrays | None = None  # int32 [... e 2], (sender, receiver)


class Targets(NamedTuple):
    """The facts about the examples that an objective reads beside their vectors.

    If `related[i, j]` is true, candidate j also answers row i and is not a negative of
    row i. Candidates are the documents of the batch: m = b for examples of one slot;
    for a query and further slots, first the documents of slot 1, then of slot 2, ...
    """

    # int32 [b], -1 without label; of pairs with labels, 1 if similar, else 0.
    labels: Arrays
    related: Arrays | None = None  # bool [b m]
    teacher: Arrays | None = None  # float32 [b f], of `Distillation`


class Batch(NamedTuple):
    """Examples of one step; `rows` points into the concatenated micro-batches.

    For a frozen segment encoder, `vectors` replaces the micro-batches.
    """

    microbatches: tuple[Microbatch, ...]
    rows: Arrays  # int32 [v b p]
    lengths: Arrays  # int32 [v b p], tokens; 0 without a segment
    places: Arrays  # int32 [v b p 2]
    graphs: Graphs
    targets: Targets
    towers: tuple[int, ...] = ()  # the tower that reads each micro-batch
    masked: tuple[Masked, ...] = ()
    answers: Arrays | float = 0.0  # [], number of tokens to predict
    vectors: Arrays | None = None  # float32 [micro-batches n d]
    # The tokens beyond the limits of a view; a number on the host.
    cut: int | None = None


class ModelBatch(NamedTuple):
    """What a trained model reads of some documents, or of some queries.

    `rows` says which segments a document has. In a batch of queries it is None: each
    row of `tokens` is a query.
    """

    tokens: Int[Arrays, "n t"]  # of all segments, padded at the end
    lengths: Int[Arrays, " n"]  # tokens of each segment, 0 for an unused row
    places: Int[Arrays, "n 2"]  # section, and number in the section
    rows: Int[Arrays, "b p"] | None = None  # in order, -1 after the last segment
    graphs: Graphs = Graphs()


class Encoded(NamedTuple):
    """A document's vector and, if they were asked for, those of its segments."""

    id: str
    vector: np.ndarray  # float32 [d]
    passages: np.ndarray | None = None  # float32 [p d], to compare with queries


class TokenAttention(NamedTuple):
    """What the first token of a segment attends to in the last layer, beside special
    tokens."""

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
        """The first token, end and section of each segment, from those of the units."""


@runtime_checkable
class ExampleMaker(Protocol):
    """Chooses the documents that a loss compares (`docjax.data.examples`)."""

    kinds: tuple[str, ...]  # DOCUMENT or QUERY for each slot

    def files(self) -> tuple[Path, ...]:
        """The files that the examples read; a resumed run needs the same bytes.

        Raises UserError if a file is missing, before the corpus is read.
        """

    def queries(self, source: Callable[[], Iterator[Document]]) -> Iterator[Document]:
        """The queries as documents, for their own corpus; none without a query slot."""

    def among(self, known: Any) -> Any:
        """The `docjax.data.examples.Examples` among the documents of `Known` there."""


@runtime_checkable
class Views(Protocol):
    """Makes training-time versions of a document, or of several."""

    kinds: tuple[str, ...]  # DOCUMENT or QUERY for each view
    least_units: int  # documents with fewer units are not used
    many_documents: bool  # one call may take the units of several documents

    def __call__(
        self, units: Units, generator: np.random.Generator
    ) -> tuple[Units, ...]: ...


@runtime_checkable
class ViewMaker(Protocol):
    """Views as a config names them, before a corpus: a class of `docjax.views`."""

    kinds: tuple[str, ...]
    least_units: int
    many_documents: bool
    halve_from: int | None  # training reads a longer document of one unit as two units

    def files(self) -> tuple[Path, ...]:
        """As in `ExampleMaker`."""

    def fitted(self, tokenizer: Any, corpus: Any, documents: Any = None) -> Views:
        """The views for the words of a corpus; `documents` None means all documents."""


@runtime_checkable
class SegmentEncoder(Protocol):
    """Tokens of segments to their vectors: a Flax module of `docjax.encoders`.

    `docjax.encoders.segment_defaults.SegmentDefaults` has all but `vocabulary` and the
    call, for an encoder that does nothing special.
    """

    has_towers: bool  # each view has its tower
    masked_lm: bool  # the encoder predicts masked tokens with `token_loss`
    reads_prompts: bool  # the words before a text change how the text is read
    shows_attention: bool  # `encoders/first_token.py` can read the last layer
    averages_words: bool  # a vector is the mean of rows of the parameter `words`
    words: int  # numbers at the end of a vector, of fitted word vectors; 0: none
    vocabulary: int  # rows of the table of tokens
    place_rows: tuple[int, int]  # of the tables of sections and of numbers in a section

    def check_training(self, tokens: int) -> None:
        """Raises UserError unless segments of up to `tokens` tokens can be trained."""

    def in_dtype(self, dtype: str) -> "SegmentEncoder":
        """The encoder in "float32" or "bfloat16". Raises UserError if it has none."""

    def __call__(self, tokens, lengths, places, keys=None) -> Any: ...


@runtime_checkable
class EncoderOfWords(Protocol):
    """A segment encoder whose words have vectors, which the report shows."""

    def word_vectors(self, params: Any) -> Any:
        """The vectors of the words [w d], by id."""


@runtime_checkable
class DocumentEncoder(Protocol):
    """Segment vectors to document vectors: a Flax module of `docjax.encoders`.

    `views` sees all views of an example, and a dropout key per example. The base
    `docjax.encoders.document_defaults.DocumentDefaults` answers all but the encoding
    itself. What follows `begins_as_mean` serves encoders that begin as the mean of the
    segment vectors: before training, a run fits and chooses it (`docjax.recipe`).
    """

    sparse: bool | None  # graphs are read as edges; None: by their size
    attends: bool  # the encoder has attention to explain
    joins_views: bool  # views attend to each other, as `cross_attention` shows
    parts: int  # vectors of a document, side by side; a query has one
    begins_as_mean: bool
    unit_length: bool  # the vectors begin with length 1
    words: int  # numbers of word vectors at the end of a segment vector
    share: float | None  # of the words in a vector; None: the run chooses it
    words_alone: bool  # training leaves nothing of the transformer's vectors
    chooses_share: bool  # a run chooses the share of the words
    components: bool  # the vectors are rotated to principal components
    nested: bool  # a run may leave the branch beside the mean out at its end

    def __call__(self, vectors, lengths, places, graphs) -> Any: ...

    def query(self, vectors) -> Any: ...

    def views(self, vectors, lengths, places, graphs, keys=None) -> Any: ...

    def begin(self, params: Any) -> Any:
        """The parameters with which training begins: the words have their share."""

    def plain(self, params: Any) -> Any:
        """The parameters of the start, for vectors of the segment encoder alone."""

    def without_branch(self, params: Any) -> Any:
        """The parameters with which the branch adds nothing."""

    def explains(self, params: Any) -> bool:
        """Whether there is attention, and it has a part in the vectors."""


@runtime_checkable
class ChecksRun(Protocol):
    """A part that does not fit every run."""

    def check_run(self, config: Any) -> None:
        """Raises UserError before documents are read. Takes the run's `RunConfig`; its
        parts are built, such as `config.views.built`."""


@runtime_checkable
class Objective(Protocol):
    """A loss of the views' vectors [v b d], with metrics: from `docjax.objectives`.

    `docjax.objectives.facts` has what a loss says about itself.
    """

    def __call__(
        self, vectors: Any, targets: Targets
    ) -> tuple[jax.Array, dict[str, jax.Array]]: ...


@runtime_checkable
class ObjectiveOfTokens(Protocol):
    """A loss of masked tokens by the encoder's `token_loss`, and perhaps of vectors."""

    contrastive: Callable | None
    weight: float
    rate: float  # the share of tokens that are predicted


@runtime_checkable
class ObjectiveOfWords(Protocol):
    """A loss of words in tables; `docjax.training.word_trainer` trains with it."""

    contrastive: Callable | None
    weight: float  # of the contrastive loss
    replicas: int

    def chances(self, counts: Any) -> Any: ...

    def gradient(self, rows, words, estimates, noise, windows) -> Any: ...


@runtime_checkable
class ObjectiveWithMemory(Protocol):
    """A loss that remembers earlier batches, in `State.memory`."""

    momentum: float | None  # how slowly a second encoder follows; None: there is none

    def begin(self, examples: int, width: int) -> Any:
        """The memory before the first batch: `examples` vectors of `width` numbers."""

    def __call__(
        self, vectors: Any, targets: Targets, memory: Any
    ) -> tuple[jax.Array, dict[str, jax.Array], Any]: ...


@runtime_checkable
class ObjectiveWithTeacher(Objective, Protocol):
    """A loss that reads `Targets.teacher`, made as `docjax/recipe/teacher.py` says."""

    neighbours: int
    smoothing: float


class Kept(NamedTuple):
    """What a run keeps at its end, and why, in one line."""

    name: str  # "trained", "mean", "words" or "start"
    params: Any
    reason: str
    metrics: dict[str, float]
    helps: bool = True  # it was shown to be better than the start


@runtime_checkable
class Keep(Protocol):
    """What a run keeps at its end: a class of `docjax.keep`."""

    metric: str | None  # TASK/METRIC of validation that chooses a step; None: the last

    def held_out(self, rows: np.ndarray, seed: int) -> np.ndarray:
        """The training documents that the steps must not learn from."""

    def choose(
        self, run: Any, mesh: Any, start: Callable[[], Any], trained: Any
    ) -> Kept | None:
        """What to keep of a `docjax.run.prepared.Prepared`; None: the `trained`
        parameters, without a word. `start` makes the first parameters."""


@runtime_checkable
class TaskData(Protocol):
    """The encoded documents of a run or of a user's files, for tasks.

    A part is "train", "validation" or "test".
    """

    @property
    def similarity(self) -> str:
        """The similarity that training used: "cosine" or "dot"."""

    def labels(self, part: str) -> list[str]:
        """The labels of the part's labelled documents, without encoding."""

    def labelled(self, part: str) -> Embeddings:
        """The labelled documents of a part."""

    def documents(self, part: str) -> Iterator[Document]:
        """The documents of a part, with their texts."""

    def sample(self, part: str, most: int | None, seed: int) -> list[Document]:
        """At most `most` documents of a part (None: all), or UserError for none."""

    def missing(self, ids: Iterable[str]) -> list[str]:
        """The ids that no document has, sorted, without encoding."""

    def vectors(self, ids: Sequence[str]) -> Float[np.ndarray, "c d"]:
        """The vectors of documents by id. Raises UserError for an unknown id."""

    def shuffled(
        self, ids: Sequence[str], pieces: str, seed: int
    ) -> Float[np.ndarray, "c d"]:
        """As `vectors`, with the "sections" or "segments" of each document in random
        order. Raises UserError, too, where no document has two of these pieces."""

    def queries(self, texts: Sequence[str]) -> Float[np.ndarray, "q d"]:
        """The vectors of queries."""

    def encode(
        self, documents: Iterable[Document], *, passages: bool = False
    ) -> Iterator[Encoded]:
        """The vectors of new documents and `passages`, in constant memory."""

    def token_attention(self) -> Callable[[str], "TokenAttention"]:
        """Of a text. Raises UserError for a model without such attention."""

    def masked_tokens(
        self, part: str, rate: float, seed: int
    ) -> tuple[float, float, int]:
        """Of a share `rate` of a part's tokens: the summed cross-entropy, the number of
        right predictions, and the number of tokens."""

    def of_task(self, name: str) -> "TaskData":
        """The same data; `keep` writes to the folder of the task called `name`."""

    def keep(self, name: str, text: str) -> None:
        """Keeps a file of a task beside its scores, if there is a place for it."""


BEFORE, AFTER = "before training", "after training"  # rows that a run has measured

Rows = Mapping[str, Mapping[str, float | int]]  # row -> metric or column -> value


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A figure of rows, a colour each: lines over the columns, or bars."""

    kind: Literal["lines", "bars"]
    name: str  # of the files in the run's folder `figures`
    rows: Rows
    title: str
    caption: str  # below the figure on the page
    y: str  # what the values are
    x: str = ""  # what the columns are
    deviations: Rows = dataclasses.field(default_factory=dict)  # error bars of lines


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of a task, and its figure; tables of one title become one."""

    title: str
    rows: Rows  # a row may lack a column
    columns: Sequence[str] = ()  # in their order; empty: as the rows have them
    note: str = ""  # what the values are, in a sentence below the table
    corner: str = ""  # the words above the names of the rows
    decimals: int | None = None  # of each value; None: four digits
    drawing: Drawing | None = None

    def by_column(self) -> dict[str, dict[str, float]]:
        """Column -> row -> value, of the columns that have a value."""
        every = dict.fromkeys(name for row in self.rows.values() for name in row)
        names = [name for name in self.columns or every if name in every]
        return {
            name: {
                row: cells[name] for row, cells in self.rows.items() if name in cells
            }
            for name in names
        }


class RankedQuery(NamedTuple):
    """A query with its answers, and the score of each system."""

    id: str
    text: str
    relevant: Sequence[str]  # ids of documents
    scores: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Rankings:
    """The documents that several systems found for the queries of a task.

    The report shows the queries on which the first of `systems` gains and loses most
    against the second.
    """

    queries: Sequence[RankedQuery]
    runs: Mapping[str, Run]  # system -> what it found, best first
    metric: str  # what the scores of the queries are
    systems: tuple[str, str]
    weights: Sequence[float] = ()  # of the vectors in a fused system
    # fused system -> its score by weight
    curves: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    documents: Callable[[], Iterator[Document]] | None = None  # None: those of the run


Reads = Literal["labels", "texts", "pairs", "collection", "nothing"]


@runtime_checkable
class Task(Protocol):
    """Vectors to metrics that a user cares about: a class of `docjax.tasks`.

    `part` is the scored part, "test" or "validation". `docjax.tasks.task.TaskDefaults`
    has all but `check` and the call.

    A task that `reads` "labels" reads the labelled documents of its parts and nothing
    else, so that a frozen encoder need not read the other documents of a run. `docjax
    evaluate` gives "texts" all documents of a file as the part "test"; "pairs" the name
    of a table as `path`, and the documents of a file; "collection" the name of a folder
    or collection as `path`; "nothing" no data.
    """

    command: str  # its name in `docjax evaluate --task`; "": it goes by its dotted name
    reads: Reads
    prompted: bool  # the task encodes documents, so the prompt of a model matters
    keeps: str  # the files that it writes with `TaskData.keep`, in words; "": none
    curves: tuple[str, ...]  # metrics that the report draws against the training step
    on_baselines: bool  # the report scores the vectors of baselines too

    def check(self, data: TaskData, part: str) -> None:
        """Raises UserError if the data are missing, before anything is encoded."""

    def __call__(self, data: TaskData, part: str) -> dict[str, float]: ...

    def is_score(self, metric: str) -> bool:
        """Whether a metric stands in the report's table of scores."""

    def tables(self, measured: Rows, published: Rows) -> Sequence[Table]:
        """Tables of its own for the report, from the metrics before and after training
        and of the baselines by row, and those of `report.published` for this task."""


@runtime_checkable
class TaskOfPairs(Protocol):
    """A task that knows similar documents: the report compares a few of them."""

    def similar(self, data: TaskData, part: str) -> Sequence[tuple[str, str]]:
        """The ids of similar documents. Raises UserError if there are none."""


class Outcome(NamedTuple):
    """A score as the report's first table shows it, and the values whose mean it is.

    The values tell how much of a difference could be chance. Those of documents are in
    the order of the scored documents, the same for every system.
    """

    name: str  # "accuracy from 10 examples"
    use: str  # what a user does who needs a high score: "clusters"
    meaning: str  # in one sentence
    values: Sequence[float]
    of_documents: bool  # one value for each scored document; else one for each seed


@runtime_checkable
class TaskWithOutcomes(Protocol):
    """A task that tells how much of its scores could be chance."""

    def outcomes(self, data: TaskData, part: str) -> Mapping[str, Outcome]:
        """The outcome of each of its main scores, by metric."""


@runtime_checkable
class TaskOfRankings(Protocol):
    """A task that ranks documents: the report shows a few searches."""

    def rankings(self, folder: Path) -> Rankings | None:
        """What the task found, from the files that it kept in `folder`; None without."""


@runtime_checkable
class TaskOfFiles(Protocol):
    """A task for which `docjax evaluate` also takes a file of results as the model."""

    suffix: str  # of such a file

    def of_file(
        self, file: Path, keep: Callable[[str, str], None] | None
    ) -> dict[str, float]:
        """The metrics of the results; `keep` is as in `TaskData`, None: keeps nothing."""


class State(NamedTuple):
    """Everything that training changes and a checkpoint holds."""

    step: jax.Array  # [] steps taken
    params: Any  # nested dict of arrays
    optimizer: Any
    memory: Any = ()  # kept between steps, but not trained by gradient


@runtime_checkable
class RowOptimizer(Protocol):
    """Updates the table rows that a gradient names: from `docjax.training.rows`."""

    adds_up: bool  # changes that replicas of a table make can be added up

    def init(self, table: Any) -> Any: ...

    def update(self, *arguments: Any) -> Any:
        """The next table and statistics of it, from these, gradients of rows and what
        scales the learning rate."""


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
        """What the loop sums over steps: "tokens", "computed" and "real" places, "cut"
        tokens if there are any."""

    def documents(self, step: int) -> list[str]:
        """The ids of the documents and queries that a step reads."""


@runtime_checkable
class OnBegin(Protocol):
    """A callback of `docjax.train` before the first step, with what config.json has."""

    def begin(self, config: dict[str, Any], workdir: Path) -> None: ...


@runtime_checkable
class OnStep(Protocol):
    """A callback after each logged step; metrics by their names in metrics.jsonl."""

    def step(self, step: int, metrics: dict[str, float]) -> None: ...


@runtime_checkable
class OnEvaluation(Protocol):
    """A callback after each evaluation; step 0 is the one before training."""

    def evaluation(self, step: int, metrics: dict[str, float]) -> None: ...


@runtime_checkable
class OnEnd(Protocol):
    """A callback with the final metrics, after the report is written."""

    def end(self, metrics: dict[str, float]) -> None: ...


GraphBuilder = Callable[[int, np.ndarray, np.ndarray], Any]  # -> jraph.GraphsTuple


def _taken(pieces: Units | Segments, rows: np.ndarray) -> dict[str, Any]:
    """The tokens at `rows`, concatenated, their offsets, and the vectors."""
    offsets = pieces.offsets
    tokens = [pieces.tokens[offsets[i] : offsets[i + 1]] for i in rows]
    return {
        "tokens": np.concatenate(tokens) if tokens else pieces.tokens[:0],
        "offsets": np.cumsum([0, *map(len, tokens)]).astype(np.int64),
        "vectors": None if pieces.vectors is None else pieces.vectors[rows],
    }
