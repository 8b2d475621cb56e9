"""A trained model for users: encode, compare, explain, classify, and call from JAX.

`docjax.load` returns a `DocumentModel`; `encoding.py` has how it makes vectors.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from docjax.data import corpus, cuts
from docjax.data.prompts import OF_DOCUMENTS
from docjax.data.tokenizer import Tokenizer
from docjax.encoders.document import DocumentEncoder
from docjax.encoders.shapes import check_same
from docjax.errors import UserError
from docjax.model import compare as comparison
from docjax.model import model_batch, sides
from docjax.model.compare import Comparison, Similarities
from docjax.model.encoding import Encoding
from docjax.model.face import Face
from docjax.model.inputs import Item, Items, as_document, check_whole, items_of
from docjax.model.other_names import OtherNames, refuse_change
from docjax.model.sides import Side
from docjax.parts import outside
from docjax.storage.arrays import digest
from docjax.types import (
    SIMILARITIES,
    GraphBuilder,
    ModelBatch,
    Order,
    Passage,
    ReadLimits,
    SegmentCutter,
    UnitCutter,
)


class Attention(NamedTuple):
    """Graph or chunk attention over one document; node 0 is the document."""

    # row = receiver, column = sender; of chunk attention one mean of all heads
    weights: Float[np.ndarray, "layers h i i"]
    segments: list[Passage]  # of the nodes 1, 2, ...
    headings: list[str]  # of the segments' sections
    segments_cut: int  # the number of segments that the model's cap leaves out
    lengths: list[int]  # tokens of each segment


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DocumentModel(Encoding, Face, OtherNames):
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
      source: the run, folder or name that the model was loaded from.
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
    source: str | None = None

    def __post_init__(self) -> None:
        if self.similarity_fn_name not in SIMILARITIES:
            raise UserError(
                f"similarity {self.similarity_fn_name!r} is none of "
                f"{', '.join(SIMILARITIES)}"
            )
        check_whole("truncate_dim", self.truncate_dim)
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

    def replace(self, *, params: Any) -> "DocumentModel":
        """The model with other parameters, such as trained ones.

        Raises:
          UserError: if a path or a shape is not that of the model's own parameters.
        """
        check_same(params, self.params)
        return dataclasses.replace(self, params=params, source=None)

    def batch(self, documents: Items, *, like: ModelBatch | None = None) -> ModelBatch:
        """What `encode` reads of documents: the arrays that `apply` takes, of NumPy.

        `jax.jit` compiles `apply` for each combination of shapes, so that all axes but
        that of the documents are rounded up to powers of two. Padding changes no vector
        and has no gradient.

        Args:
          like: an earlier batch; no axis is shorter than there, and graphs are of its
            kind. A loop that gives its last batch soon compiles no more; with the
            largest batch it compiles once.

        Raises:
          UserError: for a document without text, for anything but a list with
            documents, and for a `like` that is no batch.
        """
        if like is not None:
            model_batch.check(like, "like")
        stats: dict[str, int] = {}
        read = list(self.read(items_of(documents), stats))
        self.warn(stats)
        limit, sparse = self.limits.segment_tokens, self.encoder.sparse
        return model_batch.of_documents(read, limit, self.graph, sparse, like)

    def batch_queries(
        self, texts: Items, *, like: ModelBatch | None = None
    ) -> ModelBatch:
        """What `encode_queries` reads of queries, as `batch` gives it.

        Raises:
          UserError: as `encode_queries`, and without queries.
        """
        if like is not None:
            model_batch.check(like, "like")
        read = self.read_queries(items_of(texts, "queries"))
        return model_batch.of_queries(read, self.limits.segment_tokens, like)

    def apply(self, params: Any, batch: ModelBatch) -> Float[Array, "b d"]:
        """The vectors of a batch, as `encode` or `encode_queries` gives them.

        A pure function of both arguments, for `jax.jit`, `jax.grad` and `jax.vmap`:
        docs/jax.md has examples. `params` is a nested dict as `model.params`. There is
        no dropout. All segments of the batch are read at once.

        Raises:
          UserError: for anything but a batch, such as documents or the parameters.
        """
        model_batch.check(batch, "the second argument of apply")
        encoder = self.encoder_of(self.query_prompt if batch.rows is None else None)
        arrays = jax.tree.map(jnp.asarray, batch)
        vectors: Any = encoder.apply({"params": params}, arrays, method="vectors")
        return self._truncated(vectors)

    def classify(
        self,
        documents: Items,
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
                "this model has no classes: train one with docjax train "
                "graph_roberta_classify, or train a classifier on its vectors"
            )
        items = items_of(documents)
        whole = dataclasses.replace(self, truncate_dim=None)  # as the head was trained
        vectors = whole.encode(
            items, batch_size=batch_size, show_progress_bar=show_progress_bar
        )
        numbers = self.inference().predictions(self.params, vectors)
        return [self.labels[number] for number in numbers]

    def compare(self, a: Item, b: Item) -> Comparison:
        """The cosines of two documents, of their sections and of their segments.

        A model whose segments are too long for a reader (word averages, plain
        transformers) compares the sentences of short texts and the passages of long
        ones. The result says what the model's cap leaves out.

        Raises:
          UserError: for a document without text, or two with too many segments.
        """
        read = self.read_sides((a, b))
        comparison.check_pairs(read, comparison.PAIRS)
        return comparison.compare(self.inference(), self.params, *read)

    def similarities(self, documents: Items) -> Similarities:
        """The cosines of several documents, of all their sections and segments.

        Documents are cut as `compare` cuts them.

        Raises:
          UserError: for a document without text, and for too many segments.
        """
        read = self.read_sides(items_of(documents))
        comparison.check_all(read, comparison.PAIRS)
        return comparison.similarities(self.inference(), self.params, read)

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
        return Attention(
            weights,
            segments=pieces[:count],
            headings=headings[:count],
            segments_cut=len(whole) - count,
            lengths=kept.lengths.tolist(),
        )

    def read_sides(self, documents: Sequence[Item]) -> list[Side]:
        """The documents' tokens and texts, as `compare` reads them."""
        most = self.limits.inference_segments
        return [
            sides.read(as_document(item, number), self.cut, most)
            for number, item in enumerate(documents)
        ]

    def fingerprint(self) -> str:
        """A sha256 of everything that a document's vector depends on."""
        limit = self.limits.segment_tokens
        parts = [self.graph, self.units, self.segments]
        cut = corpus.fingerprint(None, parts, self.cut.tokenizer, limit)
        limits = sorted(self.limits._asdict().items())
        facts = f"{self.encoder_of(None)!r} {cut} {limits} {cuts.RULES}"
        facts += "" if self.truncate_dim is None else f" {self.truncate_dim}"
        facts += outside.code_of(*parts, self.encoder, self.order)
        return digest(facts, self.params)


DocumentModel.__setattr__ = refuse_change  # type: ignore[method-assign, assignment]
