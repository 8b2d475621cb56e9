"""Fuses two runs: a weighted sum of their scores, each scaled within its query.

graph-roberta's fusion: s = w * dense + (1 - w) * bm25. The weight is never chosen on
the queries that it is scored on.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from docjax.errors import UserError
from docjax.types import Run

WEIGHTS = tuple(round(0.05 * i, 2) for i in range(21))
FOLDS = 5
TOP = 1000
Score = Callable[[Run], Mapping[str, float]]  # a run -> a score of each query


def fuse(dense: Run, bm25: Run, weights: Mapping[str, float]) -> Run:
    """The fused run of the queries in `weights`, which hold the weight of `dense`.

    A document that is missing from a run has the score 0 in that run.
    """
    fused: Run = {}
    for query, weight in weights.items():
        total: dict[str, float] = {}
        for run, share in ((dense, weight), (bm25, 1 - weight)):
            for document, score in scaled(run.get(query, {})).items():
                total[document] = total.get(document, 0.0) + share * score
        best = sorted(total, key=lambda document: -total[document])[:TOP]
        fused[query] = {document: total[document] for document in best}
    return fused


def scaled(scores: Mapping[str, float]) -> dict[str, float]:
    """A query's scores, scaled to [0, 1]; equal scores all become 1."""
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if low == high:
        return dict.fromkeys(scores, 1.0)
    return {name: (score - low) / (high - low) for name, score in scores.items()}


def best_weight(dense: Run, bm25: Run, queries: Sequence[str], score: Score) -> float:
    """The weight of WEIGHTS with the best mean score over `queries`."""
    return _best(_table(dense, bm25, queries, score))


def cross_validated(
    dense: Run, bm25: Run, queries: Sequence[str], score: Score, seed: int = 0
) -> dict[str, float]:
    """For each query, the weight that is best on the queries of the other folds.

    `seed` draws the folds.

    Raises:
      UserError: for fewer than two queries.
    """
    if len(queries) < 2:
        raise UserError(
            f"{len(queries)} query is too few to choose a weight by cross-validation: "
            "give 2 or more, or another split (qrels/dev.tsv)"
        )
    table = _table(dense, bm25, queries, score)
    folds = np.random.default_rng(seed).permutation(len(queries)) % FOLDS
    best = {fold: _best(table[:, folds != fold]) for fold in set(folds.tolist())}
    return {query: best[int(fold)] for query, fold in zip(queries, folds, strict=True)}


def _table(dense: Run, bm25: Run, queries: Sequence[str], score: Score) -> np.ndarray:
    """The score of each query under each weight, [weights, queries]."""
    rows = []
    for weight in WEIGHTS:
        scores = score(fuse(dense, bm25, dict.fromkeys(queries, weight)))
        rows.append([scores[query] for query in queries])
    return np.array(rows)


def _best(table: np.ndarray) -> float:
    """The weight with the best mean; of equally good weights, the middle one."""
    means = table.mean(axis=1)
    best = np.flatnonzero(means >= means.max() - 1e-9)
    return WEIGHTS[best[len(best) // 2]]
