"""Exact nearest neighbours among any number of vectors, in constant memory."""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float
from sklearn.preprocessing import normalize

from docjax.types import Run

BLOCK = 1024  # vectors that are compared at once


def nearest(
    names: Sequence[str],
    queries: Float[np.ndarray, "q d"],
    documents: Iterable[tuple[str, Float[np.ndarray, " d"]]],
    top: int,
    *,
    cosine: bool,
) -> Run:
    """The `top` documents of each query by inner product or `cosine`, best first.

    Equal scores stay in the order of the documents.

    Args:
      names: the ids of the queries.
      documents: ids and vectors; memory holds BLOCK of them, and the best so far.
    """
    scale = normalize if cosine else np.asarray
    queries = scale(queries)
    scores = np.zeros((len(queries), 0), np.float32)
    ids = np.zeros((len(queries), 0), object)
    pairs = iter(documents)
    while block := list(itertools.islice(pairs, BLOCK)):
        vectors = scale(np.stack([vector for _, vector in block]))
        scores = np.concatenate([scores, queries @ vectors.T], axis=1)
        new = np.array([name for name, _ in block], object)
        ids = np.concatenate([ids, np.broadcast_to(new, (len(ids), len(new)))], axis=1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        scores = np.take_along_axis(scores, best, axis=1)
        ids = np.take_along_axis(ids, best, axis=1)
    return {
        name: dict(zip(ranked.tolist(), score.tolist(), strict=True))
        for name, ranked, score in zip(names, ids, scores, strict=True)
    }
