"""A trained model as a user holds it: encode, compare, explain, classify.

`docjax.load` gives one.
"""

import collections
import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, overload

import jax
import numpy as np
from absl import logging
from jaxtyping import Float
from tqdm import tqdm

from docjax.data import corpus
from docjax.data import documents as documents_lib
from docjax.data.segments import OneEach
from docjax.data.tokenizer import Tokenizer
from docjax.data.units import Cut, Whole
from docjax.encoders.document import DocumentEncoder
from docjax.errors import UserError
from docjax.model import compare as comparison
from docjax.model.compare import Comparison, Side
from docjax.model.inference import Inference, local_mesh
from docjax.model.inputs import Item, as_document, as_list, check_list
from docjax.storage.arrays import digest
from docjax.types import (
    SIMILARITIES,
    Document,
    GraphBuilder,
    Passage,
    ReadLimits,
    SegmentCutter,
    Segments,
    UnitCutter,
)

TEXTS_AT_ONCE, CHARACTERS_AT_ONCE = 256, 1 << 21  # that are tokenised
Vectors = Float[np.ndarray, "... d"]  # of one document [d], of a list [b d]
COUNTS = (
    *("documents", "segments", "tokens", "segments_cut", "tokens_cut"),
    "documents_empty",  # without a token that the model knows
)


class Attention(NamedTuple):
    """Graph attention over one document; node 0 is the document."""

    weights: Float[np.ndarray, "layers h i i"]  # row = receiver, column = sender
    segments: list[Passage]  # of the nodes 1, 2, ...
    headings: list[str]  # of the segments' sections
    segments_cut: int  # that the model's cap leaves out


class SegmentVectors(NamedTuple):
    """The segments of one document that the model reads."""

    vectors: Float[np.ndarray, "p d"]
    texts: list[str]


@dataclasses.dataclass(frozen=True, eq=False)
class DocumentModel:
    """An encoder with its parameters, tokenizer, and the way it cuts documents.

    Attributes:
      units, segments: how documents become units, and these segments.
      limits: what of a document and of a query is read.
      labels: of the classes of `classify`.
      similarity_fn_name: "cosine" or "dot": how training compared vectors.
      mesh: the devices that encode; None: those of this process.
    """

    encoder: DocumentEncoder
    params: Any
    tokenizer: Tokenizer
    units: UnitCutter
    segments: SegmentCutter
    graph: GraphBuilder | None
    limits: ReadLimits
    labels: Sequence[str] = ()
    similarity_fn_name: str = "cosine"
    mesh: jax.sharding.Mesh | None = None

    def __post_init__(self) -> None:
        if self.similarity_fn_name not in SIMILARITIES:
            raise UserError(
                f"similarity {self.similarity_fn_name!r} is none of "
                f"{', '.join(SIMILARITIES)}"
            )
        head = self.encoder.head
        classes = head.classes if head is not None and head.classifies else 0
        if classes and len(self.labels) != classes:
            raise UserError(f"{len(self.labels)} labels, {classes} classes of the head")

    @functools.cached_property
    def width(self) -> int:
        """Length of a vector."""
        return len(next(self.encode_stream(["a"])))

    @overload
    def encode(
        self,
        documents: Item | Sequence[Item],
        *,
        batch_size: int | None = None,
        show_progress_bar: bool = False,
        normalize_embeddings: bool = False,
        return_stats: Literal[False] = False,
    ) -> Vectors: ...

    @overload
    def encode(
        self,
        documents: Item | Sequence[Item],
        *,
        batch_size: int | None = None,
        show_progress_bar: bool = False,
        normalize_embeddings: bool = False,
        return_stats: Literal[True],
    ) -> tuple[Vectors, dict[str, int]]: ...

    def encode(
        self,
        documents: Item | Sequence[Item],
        *,
        batch_size: int | None = None,
        show_progress_bar: bool = False,
        normalize_embeddings: bool = False,
        return_stats: bool = False,
    ) -> Vectors | tuple[Vectors, dict[str, int]]:
        """Document vectors, float32 [documents, width], in the order given.

        One document alone gives one vector [width], as in sentence-transformers.

        Args:
          documents: texts, dicts as in a JSON-lines corpus, or Documents; or one.
          batch_size: segments that are read at once; None chooses by tokens.
          normalize_embeddings: scales vectors to length 1.
          return_stats: also gives the number of documents, segments and tokens read,
            of segments and tokens that the model's cap left out, and of documents of
            unknown words alone (otherwise the latter two are logged as a warning).

        Raises:
          UserError: for a document without text, and for a table.
        """
        items, alone = as_list(documents)
        stats: dict[str, int] = {}
        bar = tqdm(items, disable=not show_progress_bar)
        rows = list(self.encode_stream(iter(bar), batch_size=batch_size, stats=stats))
        if not return_stats:
            self.warn(stats)
        vectors = np.stack(rows) if rows else self._no_vectors()
        if normalize_embeddings:
            vectors = comparison.unit(vectors)
        vectors = vectors[0] if alone else vectors
        return (vectors, stats) if return_stats else vectors

    encode_document = encode  # its name in sentence-transformers

    def encode_stream(
        self,
        documents: Iterable[Item],
        *,
        batch_size: int | None = None,
        stats: dict[str, int] | None = None,
    ) -> Iterator[Float[np.ndarray, " d"]]:
        """The vectors of any number of documents, one by one, in their order.

        Some thousand segments are in memory at a time.

        Args:
          stats: takes the counts that `encode` returns, as documents are read.

        Raises:
          UserError: for a document without text, when it is reached.
        """
        stats = {} if stats is None else stats
        stats.update({name: 0 for name in COUNTS if name not in stats})
        read = self.read(documents, stats)
        return self.inference(batch_size).encode(self.params, read)

    def encode_once(
        self, documents: Iterable[Document], counts: dict[str, Any]
    ) -> Iterator[tuple[str, Float[np.ndarray, " d"]]]:
        """Id and vector of each document of a stream, which is read once.

        `counts` takes what `encode` counts, and the `width` of the vectors.
        """
        ids: collections.deque[str] = collections.deque()

        def remembered() -> Iterator[Document]:
            for document in documents:
                ids.append(document.id)
                yield document

        bar = tqdm(remembered(), desc="encode", unit="document", disable=None)
        for vector in self.encode_stream(iter(bar), stats=counts):
            counts["width"] = len(vector)
            yield ids.popleft(), vector

    def encode_queries(
        self, texts: str | Sequence[str], *, normalize_embeddings: bool = False
    ) -> Vectors:
        """Query vectors, float32 [queries, width]; of one text alone [width].

        A query is one segment of at most `limits.query_tokens`.

        Raises:
          UserError: for a longer query: it would be cut.
        """
        items, alone = as_list(texts)
        if not items:
            return self._no_vectors()
        vectors = self.inference().queries(self.params, self.read_queries(items))
        vectors = comparison.unit(vectors) if normalize_embeddings else vectors
        return vectors[0] if alone else vectors

    encode_query = encode_queries  # its name in sentence-transformers

    def encode_queries_of_any_length(
        self, texts: Sequence[str]
    ) -> Float[np.ndarray, "q d"]:
        """Query vectors; a text longer than the model's queries is read as a document."""
        if not len(texts):
            return self._no_vectors()
        special = len(self.tokenizer.prefix) + len(self.tokenizer.suffix)
        room = min(self.limits.query_tokens, self.limits.segment_tokens) - special
        long = np.array([len(ids) > room for ids in self.tokenizer.encode(texts)])
        vectors: list[Any] = [None] * len(texts)
        for which, encode in ((~long, self.encode_queries), (long, self.encode)):
            rows = np.flatnonzero(which)
            some = encode([texts[row] for row in rows.tolist()]) if len(rows) else ()
            for row, vector in zip(rows, some, strict=True):
                vectors[row] = vector
        return np.stack(vectors)

    def segment_vectors(
        self, documents: Sequence[Item], *, batch_size: int | None = None
    ) -> list[SegmentVectors]:
        """For each document the vectors of the segments that `encode` reads.

        The segment encoder's vectors, before the document encoder joins them, and the
        segments' texts. Read a large corpus in parts: all vectors are in memory. What
        the model's cap leaves out is logged as a warning, as in `encode`.

        Raises:
          UserError: for a document without text, and for what is not a list.
        """
        check_list(documents)
        stats = dict.fromkeys(COUNTS, 0)
        read = [self._segments(x, number, stats) for number, x in enumerate(documents)]
        self.warn(stats)
        if not read:
            return []
        inference = self.inference(batch_size)
        parts = inference.segments(self.params, [segments for segments, _ in read])
        return [SegmentVectors(v, texts) for v, (_, texts) in zip(parts, read)]

    def classify(
        self,
        documents: Sequence[Item],
        *,
        batch_size: int | None = None,
        show_progress_bar: bool = False,
    ) -> list[str]:
        """The label of each document, by the head of a model trained to classify.

        Raises:
          UserError: as `encode`, and if the model has no such head.
        """
        if not self.encoder.classifies:
            raise UserError(
                "this model has no classes: train one with "
                "--config=graph_roberta_classify, or a classifier on its vectors"
            )
        check_list(documents)
        vectors = self.encode(
            documents, batch_size=batch_size, show_progress_bar=show_progress_bar
        )
        numbers = self.inference().predictions(self.params, vectors)
        return [self.labels[number] for number in numbers]

    def similarity(
        self, a: Float[np.ndarray, "... d"], b: Float[np.ndarray, "... d"]
    ) -> Float[np.ndarray, "_ _"]:
        """Of every vector of `a` with every one of `b`, as training compared them.

        See `similarity_fn_name`; the cosine of a zero vector is 0.
        """
        a, b = np.atleast_2d(a), np.atleast_2d(b)
        return a @ b.T if self.similarity_fn_name == "dot" else comparison.cosines(a, b)

    def compare(self, a: Item, b: Item) -> Comparison:
        """How similar two documents are, and which of their sections and segments.

        All by cosine. A model that reads a document in one piece or in pieces of its
        own length (word averages, plain transformers) compares sentences, and passages
        of long texts. What the model's cap leaves out is counted, as in `encode`.

        Raises:
          UserError: for a document without text, or two with too many segments.
        """
        sides = self.read_pair(a, b)
        comparison.check_pairs(sides, comparison.PAIRS)
        return comparison.compare(self.inference(), self.params, *sides)

    def explain(self, document: Item) -> Attention:
        """The graph attention over a document's segments, with their texts.

        Raises:
          UserError: if the model's document encoder has no attention.
        """
        read = as_document(document, 0)
        one, pieces = self.cut.with_texts(read)
        kept = self._capped(one, {})
        weights = self.inference().attention(self.params, kept)
        sections = [section.heading for section in read.sections] or [""]
        headings = [sections[piece.section] for piece in pieces]
        count = len(kept)
        return Attention(weights, pieces[:count], headings[:count], len(one) - count)

    def read(
        self, documents: Iterable[Item], stats: dict[str, int]
    ) -> Iterator[Segments]:
        """Each document's tokens, as many as `encode` reads; COUNTS go to `stats`."""
        return (self._capped(one, stats) for one in self._read(documents, self.cut))

    def read_queries(self, texts: Sequence[str]) -> list[Segments]:
        """Each query's tokens. Raises UserError for one that would be cut."""
        most = self.limits.query_tokens
        whole = dataclasses.replace(self.cut, units=Whole(), segments=OneEach())
        found = list(self._read(texts, whole))
        for text, one in zip(texts, found, strict=True):
            if len(one) > 1 or len(one.tokens) > most:
                raise UserError(
                    f"query {text[:40]!r} has {len(one.tokens)} tokens, the model reads "
                    f"{most}: shorten it, or encode it as a document"
                )
        empty = sum(not len(one.tokens) for one in found)
        if empty:
            logging.warning(
                "%d of %d queries have no word of the vocabulary: their vectors are zero",
                empty,
                len(found),
            )
        return found

    def read_pair(self, a: Item, b: Item) -> list[Side]:
        """Two documents' tokens and texts, as `compare` reads them."""
        return [
            comparison.read(
                as_document(one, number), self.cut, self.limits.inference_segments
            )
            for number, one in enumerate((a, b))
        ]

    def fingerprint(self) -> str:
        """A sha256 of all that a document's vector depends on."""
        limit = self.limits.segment_tokens
        parts = [self.graph, self.units, self.segments]
        cut = corpus.fingerprint(None, parts, self.tokenizer, limit)
        facts = f"{self.encoder!r} {cut} {sorted(self.limits._asdict().items())}"
        return digest(facts, self.params)

    @property
    def cut(self) -> Cut:
        """How the model cuts documents into segments."""
        limit = self.limits.segment_tokens
        return Cut(self.units, self.segments, self.tokenizer, limit)

    def _read(self, items: Iterable, cut: Cut) -> Iterator[Segments]:
        """The segments of each item; a few hundred items are tokenised together."""
        documents = (as_document(item, number) for number, item in enumerate(items))
        for some in documents_lib.parts(documents, TEXTS_AT_ONCE, CHARACTERS_AT_ONCE):
            yield from cut.documents(some)

    def warn(self, stats: Mapping[str, int]) -> None:
        """Logs what the counts of `encode` say was not read."""
        if stats["segments_cut"]:
            logging.warning(
                "the model reads the first %d segments of a document: %d segments "
                "(%d tokens) are not read",
                self.limits.inference_segments,
                stats["segments_cut"],
                stats["tokens_cut"],
            )
        if stats["documents_empty"]:
            logging.warning(
                "%d of %d documents have no word of the vocabulary: their vectors are "
                "zero",
                stats["documents_empty"],
                stats["documents"],
            )

    def _capped(self, one: Segments, stats: dict[str, int]) -> Segments:
        """At most `limits.inference_segments` segments; counts what is left out."""
        kept = one.first(self.limits.inference_segments)
        if stats:
            stats["documents"] += 1
            stats["segments"] += len(kept)
            stats["tokens"] += len(kept.tokens)
            stats["segments_cut"] += len(one) - len(kept)
            stats["tokens_cut"] += len(one.tokens) - len(kept.tokens)
            stats["documents_empty"] += not len(kept.tokens)
        return kept

    def _segments(
        self, item: Item, number: int, stats: dict[str, int]
    ) -> tuple[Segments, list[str]]:
        """The segments of a document that are read, as tokens and as texts."""
        whole, pieces = self.cut.with_texts(as_document(item, number))
        kept = self._capped(whole, stats)
        return kept, [piece.text for piece in pieces[: len(kept)]]

    def _no_vectors(self) -> Float[np.ndarray, "0 d"]:
        return np.zeros((0, self.width), np.float32)

    def inference(self, batch_size: int | None = None) -> Inference:
        return Inference(
            encoder=self.encoder,
            graph=self.graph,
            mesh=self.mesh or local_mesh(),
            limit=self.limits.segment_tokens,
            batch=batch_size,
        )
