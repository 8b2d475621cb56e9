"""The nearest documents, exactly: block by block on all devices, in fixed memory.

A query has one vector or several, and so has a document. The score is MaxSim of ColBERT
(Khattab and Zaharia, 2020): the sum over the query's vectors of the highest inner
product with a vector of the document. With one vector each that is the inner product;
with several vectors of the document alone it is the score of its best passage (MaxP).
"""

import collections
import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, Int

from docjax.kernels import EXACT, unit
from docjax.types import Run

QUERIES = 1024  # query vectors that are compared at once
ROWS = 1 << 14  # document vectors that are compared at once
AHEAD = 2  # calls in flight at a time: each holds its block in memory
GROUP = 64  # scores of which the highest is taken first

Queries = Float[np.ndarray, "q d"]
Vectors = Float[np.ndarray, "n d"]


class Best(NamedTuple):
    """The best documents of each query, best first; the row -1 is no document."""

    scores: Float[np.ndarray, "q k"]
    rows: Int[np.ndarray, "q k"]


class Nearest:
    """Finds the `top` documents of each query by the sum of its vectors' best products.

    Documents are added one by one; memory holds a few thousand vectors, and the best so
    far. Equal scores are in the order of the documents.
    """

    def __init__(
        self,
        queries: Float[np.ndarray, "q u d"],
        top: int,
        *,
        cosine: bool,
        mesh: Mesh | None = None,
    ):
        """
        Args:
          queries: all-zero vectors fill up queries with fewer vectors.
          cosine: compares vectors of length 1.
          mesh: the devices that share the work along `data`; None: those of this
            process.
        """
        self.cosine = cosine
        self._mesh = mesh or Mesh(jax.local_devices(), ("data",))
        step = max(1, QUERIES // queries.shape[1])
        parts = [queries[i : i + step] for i in range(0, len(queries), step)]
        whole = NamedSharding(self._mesh, P())
        self._queries = [jax.device_put(part, whole) for part in parts]
        self._best = [jax.device_put(none(len(part), top), whole) for part in parts]
        self._waiting: dict[int, list[tuple[int, np.ndarray]]] = {}
        self._count = 0
        self._widths: set[int] = set()
        self._calls: collections.deque[jax.Array] = collections.deque()

    def add(self, vectors: Float[np.ndarray, "p d"]) -> None:
        """Adds a document of p vectors.

        Documents of p vectors wait until they fill a block of width w, the power of 2
        from p on; the last vector fills up a document, which changes no maximum.
        """
        width = 1 << (len(vectors) - 1).bit_length()
        filled = vectors[np.minimum(np.arange(width), len(vectors) - 1)]
        waiting = self._waiting.setdefault(width, [])
        waiting.append((self._count, filled))
        self._count += 1
        if len(waiting) * width >= ROWS:
            self._add_waiting(width)

    def add_all(
        self,
        vectors: Float[np.ndarray, "n w d"],
        rows: Int[np.ndarray, " n"] | None = None,
    ) -> None:
        """Adds documents of w vectors each, in place of `add`.

        The vectors may be mapped from a file: they are read in blocks of ROWS.

        rows: the numbers of the documents; None: 0 to n.
        """
        rows = np.arange(len(vectors)) if rows is None else rows
        count = max(1, ROWS // vectors.shape[1])
        for start in range(0, len(vectors), count):
            part = vectors[start : start + count]
            numbers = rows[start : start + count].astype(np.int32)
            # Every block has the same size, because each size is compiled.
            self._search(filled(part, count), filled(numbers, count, -1))

    def best(self) -> Best:
        """The best of all documents that were added."""
        for width in list(self._waiting):
            self._add_waiting(width)
        scores = np.concatenate([np.asarray(best.scores) for best in self._best])
        rows = np.concatenate([np.asarray(best.rows) for best in self._best])
        order = np.lexsort((rows, -scores), axis=-1)
        return Best(*(np.take_along_axis(array, order, 1) for array in (scores, rows)))

    def _add_waiting(self, width: int) -> None:
        rows, vectors = zip(*self._waiting.pop(width))
        self.add_all(np.array(vectors), np.array(rows))

    def _search(
        self, vectors: Float[np.ndarray, "n w d"], rows: Int[np.ndarray, " n"]
    ) -> None:
        shared = _shared(vectors, self._mesh), _shared(rows, self._mesh, -1)
        self._widths.add(vectors.shape[1])
        options = self.cosine, len(self._widths) > 1, self._mesh
        for number, queries in enumerate(self._queries):
            best = self._best[number]
            self._best[number] = _merge(queries, *shared, best, *options)
            self._calls.append(self._best[number].scores)
            if len(self._calls) > AHEAD:
                self._calls.popleft().block_until_ready()


def as_run(best: Best, queries: Iterable[str], ids: Sequence[str]) -> Run:
    """The run of named queries, from the documents' `ids` in their order."""
    ranked = zip(queries, best.rows.tolist(), best.scores.tolist(), strict=True)
    return {
        name: {ids[row]: score for row, score in zip(rows, scores) if row >= 0}
        for name, rows, scores in ranked
    }


def best_of(
    query: np.ndarray, vectors: Vectors, rows: np.ndarray, top: int, cosine: bool
) -> tuple[Float[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """The scores and rows of the best vectors among ascending `rows`, in float32.

    `cosine` asks for a query of length 1.
    """
    candidates = np.take(vectors, rows, axis=0)
    scores = candidates @ query
    if cosine:
        lengths = np.linalg.norm(candidates, axis=1)
        scores /= np.where(lengths > 0, lengths, 1)
    top = min(top, len(rows))
    least = np.partition(scores, -top)[-top]
    places = np.flatnonzero(scores >= least)
    order = places[np.argsort(-scores[places], kind="stable")][:top]
    return scores[order], rows[order]


def filled(array: np.ndarray, size: int, value: int = 0) -> np.ndarray:
    """`size` rows, the last of them filled up."""
    missing = [(0, size - len(array))] + [(0, 0)] * (array.ndim - 1)
    return np.pad(array, missing, constant_values=value) if missing[0][1] else array


def _shared(array: np.ndarray, mesh: Mesh, value: int = 0) -> jax.Array:
    """The array with its first axis divided among the devices."""
    array = filled(array, len(array) + -len(array) % mesh.size, value)
    return jax.device_put(array, NamedSharding(mesh, P("data")))


def none(count: int, top: int) -> Best:
    """No documents for `count` queries."""
    return Best(np.full((count, top), -np.inf, "f"), np.full((count, top), -1, "i4"))


@functools.partial(jax.jit, static_argnums=(4, 5, 6))
def _merge(queries, vectors, rows, best, cosine, mixed, mesh):
    """The best of `best` and of the documents of a block.

    mixed: blocks of several widths were searched. They do not come in the order of
      their documents, so equal scores are put into that order before the last are cut.
    """
    if cosine:
        queries, vectors = unit(queries), unit(vectors)
    top = best.scores.shape[1]
    of_device = jax.shard_map(
        functools.partial(_of_device, top=top),
        mesh=mesh,
        in_specs=(P(), P("data"), P("data")),
        out_specs=(P(None, "data"), P(None, "data")),
    )
    scores, rows = of_device(queries, vectors, rows)
    scores = jnp.concatenate([best.scores, scores], axis=1)
    rows = jnp.concatenate([best.rows, rows], axis=1)
    if mixed:
        scores, rows = jax.lax.sort((-scores, rows), num_keys=2)
        return Best(-scores[:, :top], rows[:, :top])
    scores, chosen = jax.lax.top_k(scores, top)
    return Best(scores, jnp.take_along_axis(rows, chosen, axis=1))


def _of_device(
    queries: Float[Array, "q u d"],
    vectors: Float[Array, "n w d"],
    rows: Int[Array, " n"],
    top: int,
) -> tuple[Float[Array, "q k"], Int[Array, "q k"]]:
    """The best documents of one device."""
    q, u, d = queries.shape
    n, w, _ = vectors.shape
    products = jnp.matmul(
        queries.reshape(q * u, d), vectors.reshape(n * w, d).T, precision=EXACT
    )
    scores = products.reshape(q, u, n, w).max(-1).sum(1)
    scores = jnp.where(rows >= 0, scores, -jnp.inf)
    scores, chosen = _top(scores, min(top, n))
    return scores, rows[chosen]


def _top(
    scores: Float[Array, "q n"], top: int
) -> tuple[Float[Array, "q k"], Int[Array, "q k"]]:
    """`top_k`, faster: the best are in the groups with the `top` highest maxima.

    Of equal scores the first are taken, as `top_k` does: the groups are put back in
    order before the second choice.
    """
    q, n = scores.shape
    if n % GROUP or n // GROUP <= 2 * top:
        best, places = jax.lax.top_k(scores, top)
        return best, places
    groups = scores.reshape(q, n // GROUP, GROUP)
    chosen = jnp.sort(jax.lax.top_k(groups.max(-1), top)[1], axis=1)
    candidates = jnp.take_along_axis(groups, chosen[:, :, None], axis=1)
    best, places = jax.lax.top_k(candidates.reshape(q, -1), top)
    group = jnp.take_along_axis(chosen, places // GROUP, axis=1)
    return best, group * GROUP + places % GROUP
