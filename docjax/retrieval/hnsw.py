"""The nearest vectors by a graph of neighbours, for many millions of documents.

HNSW (Malkov and Yashunin, 2020) by usearch: a search reads a small part of the vectors
and is not exact. What the graph finds is scored again with the vectors themselves.
Threads build the graph, so two graphs of the same vectors differ a little.
"""

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from docjax.errors import library
from docjax.kernels import unit
from docjax.progress.bars import bar
from docjax.retrieval.nearest import Best, Queries, Vectors, best_of, none
from docjax.storage import atomic

MORE = 4  # documents that the graph gives, times the wanted ones


def usearch() -> ModuleType:
    """The library. Raises UserError if it is not installed."""
    return library("usearch.index", "--graph", "graph")


def write(
    blocks: Iterable[Float[np.ndarray, "_ d"]], width: int, path: Path, *, cosine: bool
) -> None:
    """Writes the graph of all vectors, which come in blocks. Memory holds the graph."""
    metric = "cos" if cosine else "ip"
    graph, count = usearch().Index(ndim=width, metric=metric, dtype="bf16"), 0
    with bar("graph", unit="document") as shown:
        for vectors in blocks:
            graph.add(np.arange(count, count + len(vectors)), vectors)
            count += len(vectors)
            shown.add(len(vectors))
    with atomic.partial(path) as partial:
        graph.save(str(partial))


def nearest(
    queries: Queries, vectors: Vectors, path: Path, top: int, *, cosine: bool
) -> Best:
    """About the `top` vectors of each query. Graph and vectors stay on disk.

    Fewer than `top` are filled up with the row -1.
    """
    graph = usearch().Index.restore(str(path), view=True)
    queries = np.asarray(unit(jnp.asarray(queries))) if cosine else queries
    matches = graph.search(queries, min(MORE * top, len(vectors)))
    matches = [matches] if len(queries) == 1 else matches  # one query has no list
    best = none(len(queries), top)
    for number, query in enumerate(queries):
        rows = np.sort(matches[number].keys).astype(np.int64)
        scores, rows = best_of(query, vectors, rows, top, cosine)
        best.scores[number, : len(rows)] = scores
        best.rows[number, : len(rows)] = rows
    return best
