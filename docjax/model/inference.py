"""Vectors of many documents: the encoder reads each segment once, sorted by length.

Documents come in windows of a few thousand segments, so that memory does not grow with
their number. While the devices read a window, a thread makes the next one: a GPU would
wait for the tokenizer. Several devices share each micro-batch.
"""

import collections
import dataclasses
import functools
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Float

from docjax.data.microbatches import (
    SHAPES,
    device_graphs,
    microbatches,
    round_up,
    rows_of,
)
from docjax.encoders.document import DocumentEncoder, without_segment
from docjax.errors import UserError
from docjax.model.inputs import check_whole
from docjax.progress.bars import bar
from docjax.types import DOCUMENT, QUERY, GraphBuilder, Graphs, Segments

TOKENS = 8192  # tokens that a device reads in one call of the segment encoder
GPU_TOKENS = 65536  # with 8,192 an H200 reads MiniLM's documents a third slower
AHEAD = 8  # calls in flight at a time: a CPU of several devices can hang after 32
MANY = 8  # after so many calls, all calls have the same number of rows
WINDOW = 8192  # segments in a window
FEW_WIDTHS = 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1  # shares of the limit
GROUPS = (1, 8, 64)  # documents in one call of the document encoder
CELLS = 1 << 18  # cells of the graphs' adjacency matrices in one call

T = TypeVar("T")


def local_mesh() -> Mesh:
    """All devices of this process along the axis `data`."""
    return Mesh(jax.local_devices(), ("data",))


@dataclasses.dataclass(frozen=True)
class Inference:
    """Encodes tokenised documents; equal instances share their compiled functions.

    Raises UserError for a `batch` that is no whole number of at least 1."""

    encoder: DocumentEncoder
    graph: GraphBuilder | None
    mesh: Mesh
    limit: int  # tokens of the longest segment
    batch: int | None = None  # segments in one call; None chooses by tokens

    def __post_init__(self) -> None:
        check_whole("batch_size", self.batch)

    def encode(
        self, params: Any, documents: Iterable[Segments], total: int | None = None
    ) -> Iterator[Float[np.ndarray, " d"]]:
        """The documents' vectors, in their order; `total` says how many there are."""
        for window, segments in self._windows(params, documents, total):
            yield from self._window(params, window, segments)

    def with_passages(
        self, params: Any, documents: Iterable[Segments]
    ) -> Iterator[tuple[Float[np.ndarray, " d"], Float[np.ndarray, "p d"]]]:
        """The documents' vectors and those of their segments, each read as a query.

        So segments, queries and documents can be compared with each other.
        """
        for window, segments in self._windows(params, documents):
            vectors = self._window(params, window, segments)
            ends = np.cumsum([len(part) for part in segments])
            parts = np.concatenate(segments)
            padded = _pad(parts, round_up(len(parts)))  # few sizes are compiled
            passages = np.array(self._apply("queries", params, padded))
            parts = np.split(passages[: len(parts)], ends[:-1])
            yield from zip(vectors, parts, strict=True)

    def _windows(
        self, params: Any, documents: Iterable[Segments], total: int | None = None
    ) -> Iterator[tuple[list[Segments], list[Float[np.ndarray, "p d"]]]]:
        """Windows of documents, and the vectors of their segments."""
        with bar("encode", total, "document") as shown:
            for window in ahead(windows(documents)):
                with shown.part(len(window)) as read:
                    segments = self.segments(params, window, read=read)
                yield window, segments

    def _window(
        self, params: Any, window: list[Segments], segments: Sequence[np.ndarray]
    ) -> list[Float[np.ndarray, " d"]]:
        vectors: list[Any] = [None] * len(window)
        for group, rows in self._groups(window):
            chosen = [window[i] for i in group], [segments[i] for i in group]
            for i, vector in zip(group, self._documents(params, *chosen, rows)):
                vectors[i] = vector
        return vectors

    def segments(
        self,
        params: Any,
        documents: Sequence[Segments],
        kind: str = DOCUMENT,
        read: Callable[[int | float], None] = lambda share: None,
    ) -> list[Float[np.ndarray, "p d"]]:
        """The vectors of the segments of each document or query.

        Documents that carry vectors are not read again. `read` is called with the share
        of the tokens that the encoder has read since the last call.
        """
        new = [each for each in documents if each.vectors is None]
        vectors = iter(self._read(params, new, kind, read) if new else ())
        return [
            next(vectors) if each.vectors is None else each.vectors
            for each in documents
        ]

    def _read(
        self,
        params: Any,
        documents: Sequence[Segments],
        kind: str,
        read: Callable[[int | float], None],
    ) -> list[Float[np.ndarray, "p d"]]:
        micro, grouped = microbatches(documents, self.height, self.widths)
        # Sent to all devices once: otherwise every call sends the parameters again.
        segment = jax.device_put(params["segment"], NamedSharding(self.mesh, P()))
        tower = self.encoder.tower(kind)
        module = self.encoder.segment
        calls: collections.deque[jax.Array] = collections.deque()
        parts: list[np.ndarray] = []
        tokens = sum(int(m.lengths.sum()) for m in micro)

        def finish_oldest() -> None:
            share = int(micro[len(parts)].lengths.sum()) / max(1, tokens)
            parts.append(np.asarray(calls.popleft()))
            read(share)

        for m in micro:
            inputs = segment, *map(self.cut, m)
            calls.append(_segment_vectors(module, self.mesh, tower, *inputs))
            if len(calls) > AHEAD:
                finish_oldest()
        while calls:
            finish_oldest()
        rows = rows_of(grouped, sum(map(len, documents)))
        vectors = np.concatenate(parts)[rows]
        return np.split(vectors, np.cumsum([len(each) for each in documents])[:-1])

    def queries(
        self, params: Any, queries: Sequence[Segments]
    ) -> Float[np.ndarray, "q d"]:
        """The vectors of queries; each query is one segment."""
        if not len(queries):
            return np.zeros((0, 0), np.float32)
        vectors = np.concatenate(self.segments(params, queries, QUERY))
        return np.array(self._apply("queries", params, vectors))

    def predictions(self, params: Any, vectors: np.ndarray) -> np.ndarray:
        """The classes that the training head gives to document vectors."""
        return np.array(self._apply("predictions", params, vectors))

    def attention(
        self, params: Any, document: Segments
    ) -> Float[np.ndarray, "l h i i"]:
        """The graph attention of each layer over one document.

        Of a model with chunk attention, the weights with which each segment attends to
        all segments; the document, node 0, takes no part.
        """
        if not (self.encoder.document.explains(params) or self.attends_to_other):
            raise UserError(
                f"{type(self.encoder.document).__name__} has no attention to explain, or "
                "its run left the attention out: use a model with graph attention or "
                "chunk attention"
            )
        [vectors] = self.segments(params, [document])
        if self.attends_to_other:
            _, weights = self.cross_attention(params, vectors, vectors)
            return np.pad(weights, [(1, 0), (1, 0)])[None, None]
        matrix, _ = device_graphs([document], self.graph, len(document), sparse=False)
        inputs = vectors, document.lengths, Graphs(matrix[0])
        return np.stack(self._apply("attention", params, *inputs))

    @property
    def attends_to_other(self) -> bool:
        """Whether the segments of a document can attend to those of another."""
        return self.encoder.document.joins_views

    def cross_attention(
        self,
        params: Any,
        queries: Float[np.ndarray, "p d"],
        keys: Float[np.ndarray, "q d"],
    ) -> tuple[Float[np.ndarray, "p d"], Float[np.ndarray, "p q"]]:
        """Segment vectors after attention to those of another document, and the
        weights."""
        p, q = len(queries), len(keys)
        padded = _pad(queries, round_up(p)), _pad(keys, round_up(q))
        inputs = *padded, np.arange(len(padded[1])) < q
        both = self._apply("cross_attention", without_segment(params), *inputs)
        chunks, weights = map(np.array, both)
        return chunks[:p], weights[:p, :q]

    @property
    def widths(self) -> list[int]:
        """The widths of micro-batches, to which segments are padded.

        GPUs and TPUs, which take long to compile a program, have few.
        """
        shares = FEW_WIDTHS
        if self._platform == "cpu":
            shares = [number / SHAPES for number in range(1, SHAPES + 1)]
        widths = {math.ceil(self.limit * share / 8) * 8 for share in shares}
        # The last width is the limit: a position table may not have a longer width.
        return sorted({min(width, self.limit) for width in widths})

    @property
    def _platform(self) -> str:
        return self.mesh.devices.flat[0].platform

    def height(self, number: int, width: int, remaining: int) -> int:
        """The rows of a micro-batch, a multiple of the devices; few for a small rest.

        After MANY micro-batches a few unused rows cost less than a further shape, which
        takes time to compile, and memory.
        """
        tokens = GPU_TOKENS if self._platform == "gpu" else TOKENS
        rows = self.batch or max(1, tokens * self.mesh.size // width)
        rows = rows // 8 * 8 or rows
        if number < MANY:
            rows = min(rows, max(8, 1 << (remaining - 1).bit_length()))
        return -(-rows // self.mesh.size) * self.mesh.size

    def _groups(self, window: list[Segments]) -> Iterator[tuple[np.ndarray, int]]:
        """Groups of documents of similar length, longest first; the rows of each call.

        Memory grows with the square of a document's segments, so that long documents
        have a call of their own.
        """
        order = np.argsort([-len(each) for each in window], kind="stable")
        start = number = 0
        while start < len(order):
            height = round_up(len(window[order[start]]))
            rows = max(1, min(GROUPS[-1], CELLS // (1 + height) ** 2))
            group = order[start : start + rows]
            if number < MANY:
                rows = min(rows, next(size for size in GROUPS if size >= len(group)))
            yield group, rows
            start, number = start + len(group), number + 1

    def _documents(self, params, group, parts, rows):
        height = round_up(max(len(part) for part in parts))
        vectors = np.zeros((rows, height, parts[0].shape[-1]), np.float32)
        lengths = np.zeros((rows, height), np.int32)
        places = np.zeros((rows, height, 2), np.int32)
        for i, (document, part) in enumerate(zip(group, parts, strict=True)):
            vectors[i, : len(part)] = part
            lengths[i, : len(part)] = document.lengths
            places[i, : len(part)] = document.places
        graphs = device_graphs(group, self.graph, height, self.encoder.sparse)
        graphs = jax.tree.map(functools.partial(_pad, count=rows), graphs)
        inputs = vectors, lengths, places, graphs
        return np.array(self._apply("documents", without_segment(params), *inputs))

    @functools.partial(jax.jit, static_argnums=(0, 1))
    def _apply(self, method: str, params: Any, *inputs: Any) -> Any:
        return self.encoder.apply({"params": params}, *inputs, method=method)

    def cut(self, array: np.ndarray) -> jax.Array:
        """The rows of an array, divided over the devices."""
        rows = NamedSharding(self.mesh, P("data"))
        return jax.make_array_from_callback(array.shape, rows, array.__getitem__)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _segment_vectors(module, mesh, tower, params, tokens, lengths, places):
    """Segment vectors [n d]; compiled once for all encoders with this segment encoder."""

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P(), P("data"), P("data"), P("data")),
        out_specs=P("data"),
        check_vma=False,
    )
    def read(params, tokens, lengths, places):
        inputs = tokens, lengths, places, None
        if module.has_towers:
            inputs = *inputs, tower
        return module.apply({"params": params}, *inputs)

    vectors = read(params, tokens, lengths, places)
    return jax.lax.with_sharding_constraint(vectors, NamedSharding(mesh, P()))


def windows(documents: Iterable[Any]) -> Iterator[list[Any]]:
    """Lists of documents with about WINDOW segments or units together."""
    window: list[Any] = []
    count = 0
    for document in documents:
        window.append(document)
        count += len(document)
        if count >= WINDOW:
            yield window
            window, count = [], 0
    if window:
        yield window


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The items; a thread makes the next one while the caller uses one.

    Nobody waits for the thread of an item that is not wanted any more: its source may
    be a pipe that nobody writes to.
    """
    coming = _next(items)
    while (item := coming.result()) is not None:
        coming = _next(items)
        yield item


def _next(items: Iterator[T]) -> Future[T | None]:
    """The next item, made by a thread; None at the end."""
    future: Future[T | None] = Future()

    def make() -> None:
        try:
            future.set_result(next(items, None))
        except BaseException as error:  # noqa: BLE001 the caller gets the error
            future.set_exception(error)

    threading.Thread(target=make, name="ahead", daemon=True).start()
    return future


def _pad(array: np.ndarray, count: int) -> np.ndarray:
    """The rows of an array and after them zeros, `count` rows together."""
    return np.pad(array, [(0, count - len(array)), *[(0, 0)] * (array.ndim - 1)])
