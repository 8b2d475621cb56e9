"""Fuses two runs: weighted sums of their scores, or reciprocal ranks.

graph-roberta's fusion: s = w * dense + (1 - w) * bm25. The weight is never chosen on
the queries that it is scored on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from docjax.errors import UserError
from docjax.retrieval import folds as folds_lib
from docjax.retrieval.folds import Folds
from docjax.types import Run

WEIGHTS = tuple(round(0.05 * i, 2) for i in range(21))
TOP = 1000
RANK = 60  # of reciprocal rank fusion (Cormack et al., 2009)
Score = Callable[[Run], Mapping[str, float]]  # a run -> a score of each query
Scores = Mapping[str, float]  # a document's id -> its score


class _Joined(NamedTuple):
    names: list[str]  # of a query's documents in either run
    dense: Float[np.ndarray, " c"]
    bm25: Float[np.ndarray, " c"]


def fuse(
    dense: Run,
    bm25: Run,
    weights: Mapping[str, float],
    scale: str = "min-max",
    top: int = TOP,
) -> Run:
    """The `top` documents of the queries in `weights`, the weights of `dense`.

    A document that a run lacks has the score 0 there, or the query's lowest score in
    that run if it is below 0, as inner products can be.

    scale: "min-max" scales each query's scores of a run to [0, 1]; "raw" leaves them,
    so that the weight depends on their sizes: those of BM25 lack the factor k1 + 1 that
    many programs have (`docjax.retrieval.bm25`).

    Raises UserError for another scale.
    """
    joined = _joined(dense, bm25, list(weights), SCALED[check_scale(scale)])
    return {q: _sum(joined[q], weight, top=top) for q, weight in weights.items()}


def check_scale(scale: str) -> str:
    """The scale. Raises UserError for a scale that `fuse` does not know."""
    if scale not in SCALED:
        raise UserError(f"fusion scale {scale!r} is none of {', '.join(SCALED)}")
    return scale


def by_ranks(dense: Run, bm25: Run, queries: Sequence[str], top: int = TOP) -> Run:
    """Reciprocal rank fusion: a document scores 1 / (60 + rank) in each run."""
    joined = _joined(dense, bm25, queries, reciprocal_ranks)
    return {query: _sum(joined[query], 1.0, 1.0, top) for query in queries}


def min_max(scores: Scores) -> dict[str, float]:
    """A query's scores, scaled to [0, 1]; equal scores all become 1."""
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if low == high:
        return dict.fromkeys(scores, 1.0)
    return {name: (score - low) / (high - low) for name, score in scores.items()}


SCALED = {"min-max": min_max, "raw": dict}


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
    joined = _joined(dense, bm25, queries, SCALED[check_scale(scale)])
    return [
        score({query: _sum(joined[query], weight) for query in queries})
        for weight in WEIGHTS
    ]


def to_validate(queries: Sequence[str], folds: Folds = ()) -> Folds:
    """The folds of a cross-validation over `queries`: the given ones, or drawn ones.
    Raises UserError for fewer than two queries, or if all lie in one fold."""
    if len(queries) < 2:
        raise UserError(
            f"{len(queries)} query is too few to choose a weight by cross-validation: "
            "give 2 or more, or another split (qrels/dev.tsv)"
        )
    known = set(queries)
    folds = [f for f in folds or folds_lib.drawn(queries) if known.intersection(f)]
    if len(folds) < 2:
        raise UserError(
            f"all {len(queries)} judged queries are in one fold: to choose a weight by "
            "cross-validation, give two folds or more"
        )
    return folds


def cross_validated(
    curve: Sequence[Mapping[str, float]], folds: Folds = ()
) -> dict[str, float]:
    """For each query of a `table`, the weight that is best on those of other folds.
    Raises UserError as `to_validate`."""
    queries = list(curve[0])
    folds = to_validate(queries, folds)
    values = np.array([[scores[query] for query in queries] for scores in curve])
    weights = {}
    for fold in folds:
        inside = set(fold)
        weight = _best(values[:, [query not in inside for query in queries]])
        weights |= dict.fromkeys(fold, weight)
    return {query: weights[query] for query in queries}


def _joined(
    dense: Run, bm25: Run, queries: Sequence[str], scaled: Callable[[Scores], Scores]
) -> dict[str, _Joined]:
    """Each query's documents in either run, with their scaled scores in both."""
    joined = {}
    for query in queries:
        runs = [scaled(run.get(query, {})) for run in (dense, bm25)]
        names = list(runs[0] | runs[1])
        lowest = [min(run.values(), default=0.0) for run in runs]
        scores = [
            [run.get(name, min(low, 0.0)) for name in names]
            for run, low in zip(runs, lowest, strict=True)
        ]
        joined[query] = _Joined(names, *np.array(scores))
    return joined


def _sum(
    joined: _Joined, weight: float, of_bm25: float | None = None, top: int = TOP
) -> Scores:
    """The weighted sum of a query's scores, the `top` best documents first.

    of_bm25: the weight of BM25; None: 1 - `weight`.
    """
    other = 1 - weight if of_bm25 is None else of_bm25
    total = weight * joined.dense + other * joined.bm25
    best = np.argsort(-total, kind="stable")[:top]
    scores = total[best].tolist()
    return {joined.names[row]: s for row, s in zip(best.tolist(), scores, strict=True)}


def _best(values: np.ndarray) -> float:
    """The weight with the best mean; of equally good weights, the middle one."""
    means = values.mean(axis=1)
    best = np.flatnonzero(means >= means.max() - 1e-9)
    return WEIGHTS[best[len(best) // 2]]
