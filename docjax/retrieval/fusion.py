"""Fuses two runs: weighted sums of their scores, or reciprocal ranks.

graph-roberta's fusion: s = w * dense + (1 - w) * bm25. The weight is never chosen on
the queries that it is scored on.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from docjax.errors import UserError
from docjax.retrieval import folds as folds_lib
from docjax.retrieval.folds import Folds
from docjax.types import Run

WEIGHTS = tuple(round(0.05 * i, 2) for i in range(21))
SCALES = ("min-max", "raw")
TOP = 1000
RANK = 60  # of reciprocal rank fusion (Cormack et al., 2009)
Score = Callable[[Run], Mapping[str, float]]  # a run -> a score of each query
Scores = Mapping[str, float]  # a document's id -> its score


def fuse(
    dense: Run, bm25: Run, weights: Mapping[str, float], scale: str = "min-max"
) -> Run:
    """The fused run of the queries in `weights`, which hold the weight of `dense`.

    A document that is missing from a run has the score 0 in that run.

    Args:
      scale: "min-max" scales each query's scores of a run to [0, 1]; "raw" leaves them,
        so that the weight depends on their sizes.

    Raises:
      UserError: for another scale.
    """
    check_scale(scale)
    scaled = min_max if scale == "min-max" else dict
    return {
        query: _sum(
            (scaled(dense.get(query, {})), weight),
            (scaled(bm25.get(query, {})), 1 - weight),
        )
        for query, weight in weights.items()
    }


def check_scale(scale: str) -> None:
    """Raises UserError for a scale that `fuse` does not know."""
    if scale not in SCALES:
        raise UserError(f"fusion scale {scale!r} is none of {', '.join(SCALES)}")


def by_ranks(dense: Run, bm25: Run, queries: Sequence[str]) -> Run:
    """Reciprocal rank fusion: a document scores 1 / (60 + rank) in each run."""
    return {
        query: _sum(
            (reciprocal_ranks(dense.get(query, {})), 1.0),
            (reciprocal_ranks(bm25.get(query, {})), 1.0),
        )
        for query in queries
    }


def min_max(scores: Scores) -> dict[str, float]:
    """A query's scores, scaled to [0, 1]; equal scores all become 1."""
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if low == high:
        return dict.fromkeys(scores, 1.0)
    return {name: (score - low) / (high - low) for name, score in scores.items()}


def reciprocal_ranks(scores: Scores) -> dict[str, float]:
    """1 / (RANK + rank) of a query's documents, which are in order, best first."""
    return {name: 1 / (RANK + rank) for rank, name in enumerate(scores, start=1)}


def best_weight(curve: Sequence[Mapping[str, float]]) -> float:
    """The weight of WEIGHTS with the best mean of all queries of a `table`."""
    queries = list(curve[0])
    return _best(np.array([[scores[query] for query in queries] for scores in curve]))


def table(
    dense: Run, bm25: Run, queries: Sequence[str], score: Score, scale: str = "min-max"
) -> list[Mapping[str, float]]:
    """The score of each query under each weight of WEIGHTS."""
    return [
        score(fuse(dense, bm25, dict.fromkeys(queries, weight), scale))
        for weight in WEIGHTS
    ]


def cross_validated(
    curve: Sequence[Mapping[str, float]], folds: Folds = ()
) -> dict[str, float]:
    """For each query, the weight that is best on the queries of the other folds.

    Args:
      curve: the `table` of the queries.
      folds: groups of all queries; none draws them.

    Raises:
      UserError: for fewer than two queries, or if all lie in one fold.
    """
    queries = list(curve[0])
    if len(queries) < 2:
        raise UserError(
            f"{len(queries)} query is too few to choose a weight by cross-validation: "
            "give 2 or more, or another split (qrels/dev.tsv)"
        )
    folds = [fold for fold in folds or folds_lib.drawn(queries) if fold]
    if len(folds) < 2:
        raise UserError(
            f"all {len(queries)} judged queries are in one fold: to choose a weight by "
            "cross-validation, give two folds or more"
        )
    values = np.array([[scores[query] for query in queries] for scores in curve])
    weights = {}
    for fold in folds:
        inside = set(fold)
        weight = _best(values[:, [query not in inside for query in queries]])
        weights |= dict.fromkeys(fold, weight)
    return {query: weights[query] for query in queries}


def _sum(*parts: tuple[Scores, float]) -> dict[str, float]:
    """The weighted sum of a query's scores, the TOP best documents first."""
    total: dict[str, float] = {}
    for scores, weight in parts:
        for document, score in scores.items():
            total[document] = total.get(document, 0.0) + weight * score
    best = sorted(total, key=lambda document: -total[document])[:TOP]
    return {document: total[document] for document in best}


def _best(values: np.ndarray) -> float:
    """The weight with the best mean; of equally good weights, the middle one."""
    means = values.mean(axis=1)
    best = np.flatnonzero(means >= means.max() - 1e-9)
    return WEIGHTS[best[len(best) // 2]]
