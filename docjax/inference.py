"""Vectors of many documents: every segment is read once, in order of length.

Documents are taken in windows of some thousand segments, so that memory stays flat
however many there are. On several devices each micro-batch is cut over all of them.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import flax.linen as nn
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Float

from docjax.data import batches, graphs
from docjax.types import Segments

WINDOW = 8192  # segments
GROUP = 64  # documents in one call of the document encoder


@dataclasses.dataclass(frozen=True, eq=False)
class Inference:
    """Encodes tokenised documents with one encoder on one mesh.

    tokens: about how many tokens one call of the segment encoder reads.
    """

    encoder: nn.Module
    graph: graphs.Builder
    mesh: Mesh
    tokens: int = 8192
    sparse: bool = False

    def encode(
        self, params: Any, documents: Iterable[Segments]
    ) -> Iterator[Float[np.ndarray, "d"]]:
        """The documents' vectors, in their order."""
        for window in _windows(documents):
            vectors = self.segments(params, window)
            counts = np.cumsum([0] + [len(one) for one in window])
            out: list[Any] = [None] * len(window)
            order = np.argsort([len(one) for one in window], kind="stable")
            for start in range(0, len(order), GROUP):
                group = order[start : start + GROUP]
                parts = [vectors[counts[i] : counts[i + 1]] for i in group]
                found = self._documents(params, [window[i] for i in group], parts)
                for i, vector in zip(group, found, strict=False):
                    out[i] = vector
            yield from out

    def segments(
        self, params: Any, documents: Sequence[Segments]
    ) -> Float[np.ndarray, "n d"]:
        """The vectors of all segments of all documents, in their order."""
        lengths = np.concatenate([one.lengths for one in documents])
        widths = batches.bucket_widths(lengths, shapes=16, multiple=16)
        micro, place = batches.microbatches(documents, self._height, widths)
        found = [self._segments(params["segment"], *map(self._cut, m)) for m in micro]
        return np.concatenate([np.asarray(vectors) for vectors in found])[place]

    def queries(
        self, params: Any, queries: Sequence[Segments]
    ) -> Float[np.ndarray, "q d"]:
        """Vectors of queries of one segment each."""
        return np.asarray(self._queries(params, self.segments(params, queries)))

    def _height(self, width: int) -> int:
        rows = max(1, round(self.tokens / width / 8)) * 8
        return -(-rows // self.mesh.size) * self.mesh.size

    def _documents(self, params, group, parts):
        height = batches.round_up(max(len(part) for part in parts))
        vectors = np.zeros((GROUP, height, parts[0].shape[-1]), np.float32)
        lengths = np.zeros((GROUP, height), np.int32)
        for i, (one, part) in enumerate(zip(group, parts, strict=True)):
            vectors[i, : len(part)] = part
            lengths[i, : len(part)] = one.lengths
        graph = batches.device_graphs(group, self.graph, height, self.sparse)
        graph = [None if g is None else _pad(g, GROUP) for g in graph]
        rest = {name: part for name, part in params.items() if name != "segment"}
        return np.asarray(self._encode_documents(rest, vectors, lengths, *graph))

    @functools.partial(jax.jit, static_argnums=0)
    def _segments(self, segment, tokens, lengths):
        vectors = self._apply({"segment": segment}, tokens, lengths, method="segments")
        return jax.lax.with_sharding_constraint(vectors, NamedSharding(self.mesh, P()))

    @functools.partial(jax.jit, static_argnums=0)
    def _encode_documents(self, rest, vectors, lengths, adjacency, edges):
        return self._apply(
            rest, vectors, lengths, adjacency, edges, method="documents"
        )

    @functools.partial(jax.jit, static_argnums=0)
    def _queries(self, params, vectors):
        return self._apply(params, vectors, method="queries")

    def _apply(self, params, *arguments, method: str | Callable):
        return self.encoder.apply({"params": params}, *arguments, method=method)

    def _cut(self, array: np.ndarray) -> jax.Array:
        return jax.make_array_from_callback(
            array.shape,
            NamedSharding(self.mesh, P("data")),
            lambda index: array[index],
        )


def _windows(documents: Iterable[Segments]) -> Iterator[list[Segments]]:
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
