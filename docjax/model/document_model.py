"""A trained model for users: encode, compare, explain, classify.

`docjax.load` returns a `DocumentModel`; `reading.py` has how it reads documents.
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

from docjax.data import corpus, cuts
from docjax.data.prompts import OF_DOCUMENTS, Prompted
from docjax.data.tokenizer import Tokenizer
from docjax.encoders.document import DocumentEncoder
from docjax.encoders.first_segments import FirstSegments
from docjax.encoders.shapes import segment_of
from docjax.errors import UserError
from docjax.model import compare as comparison
from docjax.model.compare import Comparison, Side, Similarities
from docjax.model.inference import Inference, local_mesh
from docjax.model.inputs import Item, as_document, as_list, check_list
from docjax.model.reading import COUNTS, Reading
from docjax.storage.arrays import digest
from docjax.types import (
    SIMILARITIES,
    Document,
    Encoded,
    GraphBuilder,
    Order,
    Passage,
    ReadLimits,
    SegmentCutter,
    UnitCutter,
)

Vectors = Float[np.ndarray, "... d"]  # one document: [d], a list: [b d]


class Attention(NamedTuple):
    """Graph or chunk attention over one document; node 0 is the document."""

    # row = receiver, column = sender; of chunk attention one mean of all heads
    weights: Float[np.ndarray, "layers h i i"]
    segments: list[Passage]  # of the nodes 1, 2, ...
    headings: list[str]  # of the segments' sections
    segments_cut: int  # the number of segments that the model's cap leaves out


class SegmentVectors(NamedTuple):
    """The segments of one document that the model reads."""

    vectors: Float[np.ndarray, "p d"]
    texts: list[str]


@dataclasses.dataclass(frozen=True, eq=False)
class DocumentModel(Reading):
    """An encoder with its parameters, its tokenizer and its way to cut documents.

    Attributes:
      units, segments: how documents become units, and how units become segments.
      limits: how much of a document and of a query the model reads.
      labels: the names of the classes for `classify`.
      similarity_fn_name: how training compared vectors, "cosine" or "dot".
      truncate_dim: the numbers of a vector that are kept; None: all. Vectors trained
        with `widths` of InfoNCE lose little.
      mesh: the devices that encode; None: all devices of this process.
      prompts: words to put before texts, by name. They stand before every segment
        (`docjax.data.prompts`). Queries have the prompt "query", documents the first
        of "document", "passage" and "corpus" that there is, or if that is empty
        `default_prompt_name`.
      include_prompt: False leaves the prompt and the tokens before it out of the mean
        of a segment's tokens, as INSTRUCTOR does.
      order: puts the segments of a document in another order, before any is left out.
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
    truncate_dim: int | None = None
    mesh: jax.sharding.Mesh | None = None
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    default_prompt_name: str | None = None
    include_prompt: bool = True
    order: Order | None = None

    def __post_init__(self) -> None:
        if self.similarity_fn_name not in SIMILARITIES:
            raise UserError(
                f"similarity {self.similarity_fn_name!r} is none of "
                f"{', '.join(SIMILARITIES)}"
            )
        if self.truncate_dim is not None and self.truncate_dim < 1:
            raise UserError(f"truncate_dim {self.truncate_dim}: give at least 1")
        if self.truncate_dim is not None and self.parts > 1:
            raise UserError(
                "truncate_dim: this model gives a document several vectors side by "
                "side, which cannot be cut; leave it out"
            )
        head = self.encoder.head
        classes = head.classes if head is not None and head.classifies else 0
        if classes and len(self.labels) != classes:
            raise UserError(
                f"{len(self.labels)} labels: the head has {classes} classes; give one "
                "label for each class"
            )

    @property
    def parts(self) -> int:
        """How many vectors of a document stand side by side in its vector."""
        document = self.encoder.document
        return document.parts if isinstance(document, FirstSegments) else 1

    def with_prompt(
        self, prompt: str | None, prompt_name: str | None
    ) -> "DocumentModel":
        """The model with another prompt before documents, its words or its name.

        Without both the model's own prompt stays; "" means no prompt.

        Raises:
          UserError: for an unknown name.
        """
        words = self.prompt_of(prompt, prompt_name, self.document_prompt)
        prompts = {**self.prompts, OF_DOCUMENTS[0]: words}
        return dataclasses.replace(self, prompts=prompts, default_prompt_name=None)

    @property
    def place_rows(self) -> tuple[int, int]:
        """The rows of the tables that embed a segment's section and its number in the
        section; 0 without a table."""
        return segment_of(self.encoder).place_rows

    @functools.cached_property
    def width(self) -> int:
        """The length of a document vector."""
        return len(next(self.encode_stream(["a"])))

    @overload
    def encode(
        self,
        documents: Item | Sequence[Item],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
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
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool = False,
        normalize_embeddings: bool = False,
        return_stats: Literal[True],
    ) -> tuple[Vectors, dict[str, int]]: ...

    def encode(
        self,
        documents: Item | Sequence[Item],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool = False,
        normalize_embeddings: bool = False,
        return_stats: bool = False,
    ) -> Vectors | tuple[Vectors, dict[str, int]]:
        """Document vectors, float32 [documents, width], in the order given.

        A single document gives a single vector [width], as in sentence-transformers.

        Args:
          documents: a list of texts, dicts as in a JSON-lines corpus, or Documents; or
            a single document.
          prompt_name, prompt: the name or the words of another prompt; "": no prompt.
          batch_size: segments in one call; None chooses by the number of tokens.
          normalize_embeddings: scales vectors to length 1.
          return_stats: also returns COUNTS: what was read and left out, documents
            without known words, and segments whose place has no trained row. Without
            `return_stats` a warning says what was left out and what is empty.

        Raises:
          UserError: for a document without text, and for a table.
        """
        items, alone = as_list(documents)
        stats: dict[str, int] = {}
        bar = iter(tqdm(items, disable=not show_progress_bar))
        prompt = self.prompt_of(prompt, prompt_name, self.document_prompt)
        options: Any = dict(batch_size=batch_size, stats=stats, prompt=prompt)
        rows = list(self.encode_stream(bar, **options))
        if not return_stats:
            self.warn(stats)
        vectors = np.stack(rows) if rows else self._no_vectors()
        vectors = comparison.unit(vectors) if normalize_embeddings else vectors
        vectors = vectors[0] if alone else vectors
        return (vectors, stats) if return_stats else vectors

    encode_document = encode  # its name in sentence-transformers

    def encode_stream(
        self,
        documents: Iterable[Item],
        *,
        batch_size: int | None = None,
        stats: dict[str, int] | None = None,
        prompt: str | None = None,
    ) -> Iterator[Float[np.ndarray, " d"]]:
        """The vectors of any number of documents, one by one, in their order.

        Memory holds a few thousand segments at a time.

        Args:
          stats: a dict that receives the counts of `encode` while documents are read.
          prompt: as in `encode`.

        Raises:
          UserError: when the stream reaches a document without text.
        """
        stats = {} if stats is None else stats
        tokens = self.read(documents, stats, prompt)
        inference = self.inference(batch_size, prompt)
        return map(self._truncated, inference.encode(self.params, tokens))

    def encode_with_passages(
        self, documents: Iterable[Item], stats: dict[str, int]
    ) -> Iterator[tuple[Float[np.ndarray, " d"], Float[np.ndarray, "p d"]]]:
        """As `encode_stream`, with the vectors of each document's segments.

        A segment is encoded as a query is, so that queries can be compared with both.
        """
        tokens = self.read(documents, stats)
        pairs = self.inference().with_passages(self.params, tokens)
        return (
            (self._truncated(vector), self._truncated(parts)) for vector, parts in pairs
        )

    def encode_once(
        self,
        documents: Iterable[Document],
        counts: dict[str, Any],
        *,
        passages: bool = False,
    ) -> Iterator[Encoded]:
        """The id and the vector of each document of a stream that can be read once.

        Args:
          counts: receives the counts of `encode` and the `width` of the vectors.
          passages: whether to give the vectors of the segments too.
        """
        ids: collections.deque[str] = collections.deque()

        def with_ids_kept() -> Iterator[Document]:
            for document in documents:
                ids.append(document.id)
                yield document

        bar = tqdm(with_ids_kept(), desc="encode", unit="document", disable=None)
        pairs: Iterator[tuple[np.ndarray, np.ndarray | None]]
        if passages:
            pairs = self.encode_with_passages(iter(bar), counts)
        else:
            pairs = ((v, None) for v in self.encode_stream(iter(bar), stats=counts))
        for vector, parts in pairs:
            counts["width"] = len(vector)
            yield Encoded(ids.popleft(), vector, parts)

    def encode_queries(
        self,
        texts: str | Sequence[str],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        normalize_embeddings: bool = False,
    ) -> Vectors:
        """Query vectors, float32 [queries, width]; [width] for a single text.

        A query is one segment of at most `limits.query_tokens` tokens. `prompt_name`
        and `prompt` are as in `encode`.

        Raises:
          UserError: for a longer query, because a part of the query would be lost.
        """
        items, alone = as_list(texts)
        if not items:
            return self._no_vectors()[:, : self.width // self.parts]
        prompt = self.prompt_of(prompt, prompt_name, self.query_prompt)
        read = self.read_queries(items, prompt)
        inference = self.inference(prompt=prompt)
        vectors = self._truncated(inference.queries(self.params, read))
        vectors = comparison.unit(vectors) if normalize_embeddings else vectors
        return vectors[0] if alone else vectors

    encode_query = encode_queries  # its name in sentence-transformers

    def encode_queries_of_any_length(
        self, texts: Sequence[str]
    ) -> Float[np.ndarray, "q d"]:
        """Query vectors; a text that is too long for a query is read as a document, with
        the prompt of a query.

        Of a document's several vectors the first one is taken.
        """
        if not len(texts):
            return self._no_vectors()[:, : self.width // self.parts]
        tokenizer = self._prompted(self.query_prompt).tokenizer
        special = len(tokenizer.prefix) + len(tokenizer.suffix)
        room = self.limits.query_segment - special
        long = np.array([len(ids) > room for ids in tokenizer.encode(texts)])
        vectors: list[Any] = [None] * len(texts)
        as_document = functools.partial(self.encode, prompt=self.query_prompt)
        for chosen, encode in ((~long, self.encode_queries), (long, as_document)):
            rows = np.flatnonzero(chosen)
            encoded = encode([texts[row] for row in rows.tolist()]) if len(rows) else ()
            for row, vector in zip(rows, encoded, strict=True):
                vectors[row] = vector
        if self.parts > 1 and long.any():
            logging.warning("%d long queries: their first segment is read", long.sum())
        width = self.width // self.parts if self.parts > 1 else None
        return np.stack([vector[:width] for vector in vectors])

    def segment_vectors(
        self, documents: Sequence[Item], *, batch_size: int | None = None
    ) -> list[SegmentVectors]:
        """The vectors and the texts of the segments that `encode` reads, by document.

        The vectors come from the segment encoder alone, not from the document encoder.
        All of them are in memory: give a large corpus in parts. A warning says what the
        model's cap left out, as in `encode`.

        Raises:
          UserError: for a document without text, and for anything but a list.
        """
        check_list(documents)
        stats = dict.fromkeys(COUNTS, 0)
        cut = [self._segments(x, number, stats) for number, x in enumerate(documents)]
        self.warn(stats)
        if not cut:
            return []
        inference = self.inference(batch_size)
        vectors = inference.segments(self.params, [segments for segments, _ in cut])
        return [SegmentVectors(v, texts) for v, (_, texts) in zip(vectors, cut)]

    def classify(
        self,
        documents: Sequence[Item],
        *,
        batch_size: int | None = None,
        show_progress_bar: bool = False,
    ) -> list[str]:
        """The label of each document, from a model that was trained to classify.

        Raises:
          UserError: as `encode`, and if the model has no classes.
        """
        if not self.encoder.classifies:
            raise UserError(
                "this model has no classes: train one with "
                "--config=graph_roberta_classify, or train a classifier on its vectors"
            )
        check_list(documents)
        whole = dataclasses.replace(self, truncate_dim=None)  # as the head was trained
        vectors = whole.encode(
            documents, batch_size=batch_size, show_progress_bar=show_progress_bar
        )
        numbers = self.inference().predictions(self.params, vectors)
        return [self.labels[number] for number in numbers]

    def similarity(
        self, a: Float[np.ndarray, "... d"], b: Float[np.ndarray, "... f"]
    ) -> Float[np.ndarray, "_ _"]:
        """The similarity of each vector of `a` with each vector of `b`.

        `similarity_fn_name` says which; the cosine of a zero vector is 0. Of a
        document's several vectors the one that is most similar to a query counts.
        """
        a, b = np.atleast_2d(a), np.atleast_2d(b)
        if self.parts > 1 and b.shape[1] == self.parts * a.shape[1]:
            each = self.similarity(a, b.reshape(-1, a.shape[1]))
            return each.reshape(len(a), len(b), self.parts).max(-1)
        return a @ b.T if self.similarity_fn_name == "dot" else comparison.cosines(a, b)

    def compare(self, a: Item, b: Item) -> Comparison:
        """The cosines of two documents, of their sections and of their segments.

        A model whose segments are too long for a reader (word averages, plain
        transformers) compares the sentences of short texts and the passages of long
        ones. The result says what the model's cap leaves out.

        Raises:
          UserError: for a document without text, or two with too many segments.
        """
        sides = self.read_sides((a, b))
        comparison.check_pairs(sides, comparison.PAIRS)
        return comparison.compare(self.inference(), self.params, *sides)

    def similarities(self, documents: Sequence[Item]) -> Similarities:
        """The cosines of several documents, of all their sections and segments.

        Documents are cut as `compare` cuts them.

        Raises:
          UserError: for a document without text, and for too many segments.
        """
        check_list(documents)
        sides = self.read_sides(documents)
        comparison.check_all(sides, comparison.PAIRS)
        return comparison.similarities(self.inference(), self.params, sides)

    def explain(self, document: Item) -> Attention:
        """The attention over a document's segments, with their texts.

        Graph attention makes the document's vector. Chunk attention does not: CoLDE has
        it in training only, from a section to the next. Here every segment attends to
        all segments, in one layer and one mean of the heads, and row and column 0, of
        the document, are 0.

        Raises:
          UserError: if the model's document encoder has no attention.
        """
        parsed = as_document(document, 0)
        whole, pieces = self.cut.with_texts(parsed)
        kept = self.capped(whole, {})
        weights = self.inference().attention(self.params, kept)
        sections = [section.heading for section in parsed.sections] or [""]
        headings = [sections[piece.section] for piece in pieces]
        count = len(kept)
        return Attention(weights, pieces[:count], headings[:count], len(whole) - count)

    def read_sides(self, documents: Sequence[Item]) -> list[Side]:
        """The documents' tokens and texts, as `compare` reads them."""
        return [
            comparison.read(
                as_document(item, number), self.cut, self.limits.inference_segments
            )
            for number, item in enumerate(documents)
        ]

    def fingerprint(self) -> str:
        """A sha256 of everything that a document's vector depends on."""
        limit = self.limits.segment_tokens
        parts = [self.graph, self.units, self.segments]
        cut = corpus.fingerprint(None, parts, self.cut.tokenizer, limit)
        facts = f"{self.inference().encoder!r} {cut} {sorted(self.limits._asdict().items())}"
        facts += f" {cuts.RULES}"
        facts += "" if self.truncate_dim is None else f" {self.truncate_dim}"
        return digest(facts, self.params)

    def _truncated(
        self, vectors: Float[np.ndarray, "*s d"]
    ) -> Float[np.ndarray, "*s f"]:
        """The first `truncate_dim` numbers. Raises UserError if there are fewer."""
        if self.truncate_dim is None:
            return vectors
        if self.truncate_dim > vectors.shape[-1]:
            raise UserError(
                f"truncate_dim {self.truncate_dim}: the vectors have "
                f"{vectors.shape[-1]} numbers"
            )
        return vectors[..., : self.truncate_dim]

    def _no_vectors(self) -> Float[np.ndarray, "0 d"]:
        return np.zeros((0, self.width), np.float32)

    def inference(
        self, batch_size: int | None = None, prompt: str | None = None
    ) -> Inference:
        """What encodes segments with a prompt; None: with the prompt of documents."""
        encoder, tokenizer = self.encoder, self._prompted(prompt).tokenizer
        if not self.include_prompt and isinstance(tokenizer, Prompted):
            segment = encoder.segment.clone(left_out=tokenizer.length)
            encoder = encoder.clone(segment=segment)
        return Inference(
            encoder=encoder,
            graph=self.graph,
            mesh=self.mesh or local_mesh(),
            limit=self.limits.segment_tokens,
            batch=batch_size,
        )
