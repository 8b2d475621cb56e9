"""The vectors of documents and queries: what `DocumentModel` encodes.

`reading.py` has what the model reads of them, `inference.py` how the devices share it.
"""

import collections
import contextlib
import dataclasses
import functools
import logging
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, NamedTuple, Unpack

import jax
import numpy as np
from jaxtyping import Float

from docjax.errors import UserError
from docjax.model import encode_options, model_batch
from docjax.model.encode_options import Options
from docjax.model.inference import Inference, local_mesh
from docjax.model.inputs import Item, Items, as_documents, as_list, check_flag, items_of
from docjax.model.reading import COUNTS, Reading
from docjax.progress import bars
from docjax.types import Arrays, Document, Encoded, GraphBuilder

logger = logging.getLogger(__name__)


class SegmentVectors(NamedTuple):
    """The segments of one document that the model reads."""

    vectors: Float[np.ndarray, "p d"]
    texts: list[str]


class Encoding(Reading):
    """The part of `DocumentModel` that makes vectors; its attributes are fields there."""

    params: Any
    graph: GraphBuilder | None
    truncate_dim: int | None
    mesh: jax.sharding.Mesh | None

    @property
    def parts(self) -> int:
        """How many vectors of a document stand side by side in its vector."""
        return self.encoder.parts

    @functools.cached_property
    def width(self) -> int:
        """The length of a document vector. Raises UserError if `truncate_dim` is
        longer."""
        read, limit = list(self.read(["a"], {})), self.limits.segment_tokens
        sparse = self.encoder.sparse
        batch = model_batch.of_documents(read, limit, self.graph, sparse, None)
        vectors = functools.partial(self.encoder_of(None).apply, method="vectors")
        shaped: Any = jax.eval_shape(vectors, {"params": self.params}, batch)
        return self._truncated(np.broadcast_to(np.float32(0), shaped.shape)).shape[-1]

    def encode(
        self,
        documents: Item | Items | None = None,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = False,
        return_stats: bool = False,
        **options: Unpack[Options],
    ) -> Any:
        """Document vectors, float32 [documents, width], in the order given.

        A single document gives a single vector [width], as in sentence-transformers.
        The caller may change the array.

        Args:
          documents: a list of texts, dicts as in a JSON-lines corpus, or Documents; a
            column of a table or an array of texts; or a single document.
          prompt_name, prompt: the name or the words of another prompt; "": no prompt.
          batch_size: segments in one call; None chooses by the number of tokens.
          return_stats: returns the vectors and COUNTS: what was read and left out,
            documents without known words, and segments whose place has no trained row.
            Without `return_stats` a warning says what was left out and what is empty.
          options: of sentence-transformers, see `docjax.model.encode_options.Options`.

        Raises:
          UserError: for a document without text, before any is encoded; for a table;
            and for an option that docjax has not.
        """
        encode_options.check(options)
        check_flag("show_progress_bar", show_progress_bar)
        check_flag("return_stats", return_stats)
        items, alone = as_list(documents)
        model, stats = self._cut_to(options.get("truncate_dim")), dict[str, int]()
        prompt = self.prompt_of(prompt, prompt_name, self.document_prompt)
        read = as_documents(items)
        given: Any = dict(batch_size=batch_size, stats=stats, prompt=prompt)
        with bars.shown() if show_progress_bar else contextlib.nullcontext():
            rows = list(model.encode_stream(read, **given))
        if not return_stats:
            self.warn(stats)
        vectors = np.stack(rows) if rows else model._no_vectors()
        vectors = encode_options.finished(vectors, options, alone)
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
        total = len(documents) if isinstance(documents, Sized) else None
        return map(self._truncated, inference.encode(self.params, tokens, total))

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

        pairs: Iterator[tuple[np.ndarray, np.ndarray | None]]
        if passages:
            pairs = self.encode_with_passages(with_ids_kept(), counts)
        else:
            vectors = self.encode_stream(with_ids_kept(), stats=counts)
            pairs = ((vector, None) for vector in vectors)
        for vector, parts in pairs:
            counts["width"] = len(vector)
            yield Encoded(ids.popleft(), vector, parts)

    def encode_queries(
        self,
        texts: str | Items | None = None,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = False,
        **options: Unpack[Options],
    ) -> Any:
        """Query vectors, float32 [queries, width]; [width] for a single text.

        A query is one segment of at most `limits.query_tokens` tokens. The arguments are
        as in `encode`; there is no bar, since queries are short.

        Raises:
          UserError: for a longer query, because a part of the query would be lost.
        """
        del show_progress_bar
        encode_options.check(options)
        items, alone = as_list(texts, "queries")
        model = self._cut_to(options.get("truncate_dim"))
        if not items:
            return model._no_vectors()[:, : model.width // model.parts]
        prompt = self.prompt_of(prompt, prompt_name, self.query_prompt)
        read = self.read_queries(items, prompt)
        inference = self.inference(batch_size, prompt)
        vectors = model._truncated(inference.queries(self.params, read))
        return encode_options.finished(vectors, options, alone)

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
            logger.warning("%d long queries: their first segment is read", long.sum())
        width = self.width // self.parts if self.parts > 1 else None
        return np.stack([vector[:width] for vector in vectors])

    def segment_vectors(
        self, documents: Items, *, batch_size: int | None = None
    ) -> list[SegmentVectors]:
        """The vectors and the texts of the segments that `encode` reads, by document.

        The vectors come from the segment encoder alone, not from the document encoder.
        All of them are in memory: give a large corpus in parts. A warning says what the
        model's cap left out, as in `encode`.

        Raises:
          UserError: for a document without text, and for anything but a list.
        """
        stats = dict.fromkeys(COUNTS, 0)
        cut, kept, texts = self.cut, [], []
        for document in as_documents(items_of(documents)):
            whole, pieces = cut.with_texts(document)
            kept.append(self.capped(whole, stats))
            texts.append([piece.text for piece in pieces[: len(kept[-1])]])
        self.warn(stats)
        vectors = self.inference(batch_size).segments(self.params, kept)
        return list(map(SegmentVectors, vectors, texts))

    def inference(
        self, batch_size: int | None = None, prompt: str | None = None
    ) -> Inference:
        """What encodes segments with a prompt; None: with the prompt of documents.

        Raises:
          UserError: under `jax.jit`, `jax.grad` or `jax.vmap`.
        """
        leaves = jax.tree.leaves(self.params)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            raise UserError(
                "jit, grad and vmap cannot trace encode, compare and explain: call "
                "model.apply(params, model.batch(documents))"
            )
        return Inference(
            encoder=self.encoder_of(prompt),
            graph=self.graph,
            mesh=self.mesh or local_mesh(),
            limit=self.limits.segment_tokens,
            batch=batch_size,
        )

    def _cut_to(self, truncate_dim: int | None) -> Any:
        """The model that keeps so many numbers of a vector; None: the model itself.
        Raises UserError if its vectors have fewer."""
        if truncate_dim is None:
            return self
        model: Any = dataclasses.replace(self, truncate_dim=truncate_dim)  # type: ignore[type-var]
        model.width  # noqa: B018, raises before anything is encoded
        return model

    def _truncated(self, vectors: Float[Arrays, "*s d"]) -> Any:
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
