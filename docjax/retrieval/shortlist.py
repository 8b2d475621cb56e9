"""The nearest of many vectors in a file, exactly: a fast pass, then the best in float32.

The fast pass multiplies in bfloat16 and keeps only the highest product of each GROUP of
neighbours in the file. The groups with the highest products are scored again. The error
of the fast pass has a bound, so a query whose last document is above all that the bound
allows to the other groups has the same documents as a product in float32; any other
query is searched again in float32. With codes (`docjax.retrieval.codes`) the fast pass
reads them in place of the vectors, and there is no such proof.
"""

import collections
import functools
import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Float, Int

from docjax.kernels import unit
from docjax.retrieval.codes import Codes
from docjax.retrieval.nearest import (
    Best,
    Nearest,
    Queries,
    Vectors,
    best_of,
    filled,
    none,
)

QUERIES = 1024  # that are compared at once
ROWS = 1 << 12  # vectors of one call; more products would leave the processor's cache
GROUP = 8
CALLS = 128  # after so many calls, the best of their groups are taken
AHEAD = 8  # calls in flight at a time
BFLOAT16 = 8, 7  # bits of its exponent and of its mantissa
FLOAT32 = 2**-23  # error of a sum of products, for each of them and at most
GROUPS = {"": 1.75, "int8": 2, "binary": 8}  # scored again, times the wanted documents

Numbers = Int[np.ndarray, "q c"]
_unit = jax.jit(unit)


class Rounding(NamedTuple):
    """What rounding to bfloat16 does to vectors: the largest change, as a length, and
    the length of the longest vector."""

    change: float
    longest: float


class _Groups(NamedTuple):
    """Of each query the groups with the highest products, and what they leave out."""

    numbers: Numbers
    lowest: Float[np.ndarray, " q"]  # no other group has a higher product


def nearest(
    queries: Queries,
    vectors: Vectors,
    top: int,
    *,
    cosine: bool,
    rounding: Rounding | None = None,
    codes: Codes | None = None,
    kind: str = "",
    mesh: Mesh | None = None,
) -> Best:
    """The `top` vectors of each query by inner product, or by `cosine`.

    Equal scores are in the order of the vectors. Memory does not grow with `vectors`,
    which may be mapped from a file.

    Args:
      rounding: `measured` before; None: measures it, which reads all vectors.
      codes, kind: of the vectors, [n 1 _]; without codes the result is exact.
      mesh: the devices that share the work along `data`; None: those of this process.
    """
    mesh = mesh or Mesh(jax.local_devices(), ("data",))
    top, by_part = min(top, len(vectors)), []
    if codes is None:
        rounding = rounding or measured(vectors, cosine=cosine)
    for start in range(0, len(queries), QUERIES):
        asked = queries[start : start + QUERIES]
        asked = np.asarray(_unit(asked)) if cosine else asked
        groups = _groups(
            asked, codes or vectors, round(GROUPS[kind] * top), cosine, mesh
        )
        best = _scored(asked, vectors, groups.numbers, top, cosine)
        if codes is None:
            error = _error(asked, rounding)
            unsure = best.scores[:, -1] < groups.lowest + error
            if unsure.any():
                exact = _exact(asked[unsure], vectors, top, cosine, mesh)
                best.scores[unsure], best.rows[unsure] = exact
        by_part.append(best)
    return Best(*(np.concatenate(parts) for parts in zip(*by_part, strict=True)))


def measured(vectors: Vectors, *, cosine: bool) -> Rounding:
    """The rounding of all vectors; of vectors of length 1 for `cosine`."""
    of_blocks = [
        np.asarray(_rounding(vectors[start : start + ROWS], cosine))
        for start in range(0, len(vectors), ROWS)
    ]
    change, longest = np.max(of_blocks, axis=0).tolist()
    return Rounding(change, longest)


@functools.partial(jax.jit, static_argnums=1)
def _rounding(vectors, cosine):
    vectors = unit(vectors) if cosine else vectors
    # XLA leaves out two conversions that follow each other, but not this.
    change = vectors - jax.lax.reduce_precision(vectors, *BFLOAT16)
    return jnp.stack([jnp.linalg.norm(x, axis=-1).max() for x in (change, vectors)])


def _groups(
    queries: Queries, source: Vectors | Codes, count: int, cosine: bool, mesh: Mesh
) -> _Groups:
    """The fast pass."""
    size = -(-ROWS // (GROUP * mesh.size)) * GROUP * mesh.size
    turned = queries.astype(jnp.bfloat16).T.copy()
    turned = jax.device_put(turned, NamedSharding(mesh, P()))
    rows = len(source[0]) if isinstance(source, Codes) else len(source)
    parts: list[jax.Array] = []
    chosen = []
    calls: collections.deque[jax.Array] = collections.deque()
    for start in range(0, rows, size):
        cut = functools.partial(_block, start=start, size=size, mesh=mesh)
        highest = _highest(
            jax.tree.map(cut, source), turned, min(size, rows - start), cosine
        )
        parts.append(highest)
        calls.append(highest)
        if len(calls) > AHEAD:
            calls.popleft().block_until_ready()
        if len(parts) == CALLS or start + size >= rows:
            first = (start + size) // GROUP - sum(part.shape[1] for part in parts)
            products, numbers = _best_groups(parts, count)
            chosen.append((np.asarray(products), np.asarray(numbers) + first))
            parts = []
    products, numbers = (np.concatenate(p, axis=1) for p in zip(*chosen, strict=True))
    order = np.argsort(-products, axis=1, kind="stable")[:, :count]
    products, numbers = (np.take_along_axis(a, order, 1) for a in (products, numbers))
    every = products.shape[1] * GROUP >= rows  # nothing is left out
    lowest = np.full(len(queries), -np.inf) if every else products[:, -1]
    return _Groups(numbers, lowest)


def _error(queries: Queries, rounding: Rounding) -> Float[np.ndarray, " q"]:
    """The most that a product of the fast pass differs from one in float32."""
    rounded = queries.astype(jnp.bfloat16).astype(np.float32)
    of_sums = 2 * FLOAT32 * queries.shape[1] * rounding.longest  # in both passes
    of_queries = np.linalg.norm(queries - rounded, axis=1)
    lengths = np.linalg.norm(rounded, axis=1)
    return of_queries * rounding.longest + lengths * (rounding.change + of_sums)


def _block(array: np.ndarray, start: int, size: int, mesh: Mesh) -> jax.Array:
    """Rows of the array, filled up with zeros, divided among the devices."""
    part = filled(np.asarray(array[start : start + size]), size)
    return jax.device_put(part, NamedSharding(mesh, P("data")))


@functools.partial(jax.jit, static_argnums=3)
def _highest(source, queries, count, cosine):
    """The highest product of each group, [q g].

    queries: bfloat16 [d q]; count: the rows that are not filling.
    """
    vectors = source.decoded()[:, 0] if isinstance(source, Codes) else source
    vectors = unit(vectors) if cosine else vectors
    vectors = vectors.astype(jnp.bfloat16)
    products = jax.lax.dot(vectors, queries, preferred_element_type=jnp.float32)
    highest = products.reshape(-1, GROUP, products.shape[1]).max(1)
    known = jnp.arange(len(highest)) * GROUP < count
    return jnp.where(known[:, None], highest, -jnp.inf).T


@functools.partial(jax.jit, static_argnums=1)
def _best_groups(parts, count):
    products = jnp.concatenate(parts, axis=1)
    return jax.lax.top_k(products, min(count, products.shape[1]))


def _scored(
    queries: Queries, vectors: Vectors, groups: Numbers, top: int, cosine: bool
) -> Best:
    """The best vectors of each query's groups, in float32."""
    best = none(len(queries), top)

    def score(number: int) -> None:
        rows = (np.sort(groups[number])[:, None] * GROUP + np.arange(GROUP)).ravel()
        rows = rows[rows < len(vectors)]
        found = best_of(queries[number], vectors, rows, top, cosine)
        best.scores[number], best.rows[number] = found

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(score, range(len(queries))))
    return best


def _exact(
    queries: Queries, vectors: Vectors, top: int, cosine: bool, mesh: Mesh
) -> Best:
    """The search in float32 alone."""
    search = Nearest(queries[:, None], top, cosine=cosine, mesh=mesh)
    search.add_all(vectors[:, None])
    return search.best()
