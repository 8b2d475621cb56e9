"""Vectors of many documents: every segment is read once, in order of length.

Documents are taken in windows of some thousand segments, so that memory stays flat
however many there are. On several devices each micro-batch is cut over all of them.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Float

from docjax.data import graphs
from docjax.data import segment_batches as batches
from docjax.encoders.document import DocumentEncoder
from docjax.errors import UserError
from docjax.types import Segments

TOKENS = 8192  # that one call of the segment encoder reads
SHAPES = 16  # widths of a micro-batch
AHEAD = 8  # calls before one is waited for: a CPU of several devices can hang after 32
MANY = 8  # calls, after which all have the same rows
WINDOW = 8192  # segments
GROUPS = (1, 8, 64)  # documents in one call of the document encoder
CELLS = 1 << 18  # of the graphs' adjacency matrices in one call


@dataclasses.dataclass(frozen=True)
class Inference:
    """Encodes tokenised documents with one encoder on one mesh.

    Equal ones share what is compiled.

    limit: tokens of the longest segment; batch: segments in one call, None chooses
    by TOKENS.

    Raises:
      UserError: for a `batch` below 1.
    """

    encoder: DocumentEncoder
    graph: graphs.Builder | None
    mesh: Mesh
    limit: int
    batch: int | None = None

    def __post_init__(self) -> None:
        if self.batch is not None and self.batch < 1:
            raise UserError(f"batch_size {self.batch}: at least 1 is needed")

    def encode(
        self, params: Any, documents: Iterable[Segments]
    ) -> Iterator[Float[np.ndarray, " d"]]:
        """The documents' vectors, in their order."""
        for window in windows(documents):
            vectors = self.segments(params, window)
            counts = np.cumsum([0] + [len(one) for one in window])
            out: list[Any] = [None] * len(window)
            for group, rows in self._groups(window):
                parts = [vectors[counts[i] : counts[i + 1]] for i in group]
                found = self._documents(params, [window[i] for i in group], parts, rows)
                for i, vector in zip(group, found, strict=False):
                    out[i] = vector
            yield from out

    def segments(
        self, params: Any, documents: Sequence[Segments]
    ) -> Float[np.ndarray, "n d"]:
        """The vectors of all segments of all documents, in their order."""
        if documents and all(one.vectors is not None for one in documents):
            return np.concatenate([one.vectors for one in documents])
        micro, place = batches.microbatches(documents, self._height, self.widths)
        # On all devices once, or every call would send the parameters again.
        segment = jax.device_put(params["segment"], NamedSharding(self.mesh, P()))
        found: list[jax.Array] = []
        for m in micro:
            found.append(self._segments(segment, *map(self._cut, m)))
            if len(found) > AHEAD:
                found[-AHEAD].block_until_ready()
        return np.concatenate([np.asarray(vectors) for vectors in found])[place]

    def queries(
        self, params: Any, queries: Sequence[Segments]
    ) -> Float[np.ndarray, "q d"]:
        """Vectors of queries of one segment each."""
        if not len(queries):
            return np.zeros((0, 0), np.float32)
        return np.asarray(self._queries(params, self.segments(params, queries)))

    def predictions(self, params: Any, vectors: np.ndarray) -> np.ndarray:
        """The classes that the training head gives to document vectors."""
        return np.asarray(self._predictions(params, vectors))

    def attention(
        self, params: Any, document: Segments
    ) -> Float[np.ndarray, "l h i i"]:
        """The graph attention of each layer over one document."""
        if not hasattr(self.encoder.document, "nodes"):
            raise UserError(
                f"{type(self.encoder.document).__name__} has no attention to explain"
            )
        vectors = self.segments(params, [document])
        matrix, edges = batches.device_graphs(
            [document], self.graph, len(document), sparse=False
        )
        del edges
        return np.stack(self._attention(params, vectors, document.lengths, matrix[0]))

    @property
    def widths(self) -> list[int]:
        """Of the micro-batches: segments are padded to one of them."""
        step = -(-self.limit // (8 * SHAPES)) * 8
        # The last is the limit itself: a position table may have no more room.
        return [*range(step, self.limit, step), self.limit]

    def _height(self, number: int, width: int, remaining: int) -> int:
        """Rows of a micro-batch, a multiple of the devices: few for a small rest.

        After many of them unused rows cost little; another shape would be compiled, and
        memory grows with each.
        """
        rows = self.batch or max(8, TOKENS // width // 8 * 8)
        if number < MANY:
            rows = min(rows, max(8, 1 << (remaining - 1).bit_length()))
        return -(-rows // self.mesh.size) * self.mesh.size

    def _groups(self, window: list[Segments]) -> Iterator[tuple[np.ndarray, int]]:
        """Documents of like length, longest first, and the rows of their call.

        Memory grows with the square of a document's segments: long ones go alone.
        """
        order = np.argsort([-len(one) for one in window], kind="stable")
        start = number = 0
        while start < len(order):
            height = batches.round_up(len(window[order[start]]))
            rows = max(1, min(GROUPS[-1], CELLS // (1 + height) ** 2))
            group = order[start : start + rows]
            if number < MANY:
                rows = min(rows, next(size for size in GROUPS if size >= len(group)))
            yield group, rows
            start, number = start + len(group), number + 1

    def _documents(self, params, group, parts, rows):
        height = batches.round_up(max(len(part) for part in parts))
        vectors = np.zeros((rows, height, parts[0].shape[-1]), np.float32)
        lengths = np.zeros((rows, height), np.int32)
        for i, (one, part) in enumerate(zip(group, parts, strict=True)):
            vectors[i, : len(part)] = part
            lengths[i, : len(part)] = one.lengths
        graph = batches.device_graphs(group, self.graph, height, self.encoder.sparse)
        graph = [None if g is None else _pad(g, rows) for g in graph]
        rest = {name: part for name, part in params.items() if name != "segment"}
        return np.asarray(self._encode_documents(rest, vectors, lengths, *graph))

    @functools.partial(jax.jit, static_argnums=0)
    def _segments(self, segment, tokens, lengths):
        vectors = self._apply({"segment": segment}, tokens, lengths, method="segments")
        return jax.lax.with_sharding_constraint(vectors, NamedSharding(self.mesh, P()))

    @functools.partial(jax.jit, static_argnums=0)
    def _encode_documents(self, rest, vectors, lengths, adjacency, edges):
        return self._apply(rest, vectors, lengths, adjacency, edges, method="documents")

    @functools.partial(jax.jit, static_argnums=0)
    def _queries(self, params, vectors):
        return self._apply(params, vectors, method="queries")

    @functools.partial(jax.jit, static_argnums=0)
    def _attention(self, params, vectors, lengths, adjacency):
        return self._apply(params, vectors, lengths, adjacency, method="attention")

    @functools.partial(jax.jit, static_argnums=0)
    def _predictions(self, params, vectors):
        return self._apply(params, vectors, method="predictions")

    def _apply(self, params, *arguments, method: str | Callable):
        return self.encoder.apply({"params": params}, *arguments, method=method)

    def _cut(self, array: np.ndarray) -> jax.Array:
        return jax.make_array_from_callback(
            array.shape,
            NamedSharding(self.mesh, P("data")),
            lambda index: array[index],
        )


def windows(documents: Iterable[Segments]) -> Iterator[list[Segments]]:
    """Documents in lists of about WINDOW segments."""
    window: list[Segments] = []
    count = 0
    for one in documents:
        window.append(one)
        count += len(one)
        if count >= WINDOW:
            yield window
            window, count = [], 0
    if window:
        yield window


def _pad(array: np.ndarray, rows: int) -> np.ndarray:
    missing = [(0, rows - len(array))] + [(0, 0)] * (array.ndim - 1)
    return np.pad(array, missing)
