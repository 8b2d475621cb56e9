"""Are the documents that answer a query at the top? By words, by vectors, by both.

Metrics are those of trec_eval, by ir-measures: means over the queries that have an
answer, all in [0, 1].
"""

import functools
from collections.abc import Mapping
from types import ModuleType

from docjax.errors import UserError
from docjax.retrieval import fusion
from docjax.retrieval.collection import Qrels, Run

METRICS = {"ndcg@10": "nDCG@10", "mrr@10": "RR@10", "recall@100": "R@100", "map": "AP"}
TUNED = "ndcg@10"  # what the weight of the fusion is chosen by


def retrieval(
    dense: Run, bm25: Run, test: Qrels, tuning: Qrels | None = None
) -> dict[str, float]:
    """`SYSTEM/ndcg@10`, `/mrr@10`, `/recall@100` and `/map` of bm25, dense and fused.

    Also `fused/weight`, the share of `dense`: chosen on the queries of `tuning`, or
    without any by cross-validation over those of `test`, and then the mean.

    Raises:
      UserError: if ir-measures is not installed, and for a single query.
    """
    score = functools.partial(of_queries, metric=TUNED)
    if tuning:
        weight = fusion.best_weight(
            dense, bm25, list(tuning), functools.partial(score, tuning)
        )
        weights = dict.fromkeys(test, weight)
    else:
        weights = fusion.cross_validated(
            dense, bm25, list(test), functools.partial(score, test)
        )
    fused = fusion.fuse(dense, bm25, weights)
    found = {}
    for system, run in (("bm25", bm25), ("dense", dense), ("fused", fused)):
        for metric in METRICS:
            scores = of_queries(test, run, metric)
            found[f"{system}/{metric}"] = sum(scores.values()) / len(scores)
    return {**found, "fused/weight": sum(weights.values()) / len(weights)}


def of_queries(qrels: Qrels, run: Run, metric: str) -> Mapping[str, float]:
    """The metric of each query of `qrels`; a query that found nothing has 0."""
    library = ir_measures()
    measure = library.parse_measure(METRICS[metric])
    found = library.iter_calc([measure], qrels, {q: run.get(q, {}) for q in qrels})
    return dict.fromkeys(qrels, 0.0) | {one.query_id: one.value for one in found}


def ir_measures() -> ModuleType:
    """The library; a UserError says how to get it."""
    try:
        import ir_measures as found
    except ImportError:
        raise UserError(
            "retrieval needs ir-measures: pip install 'docjax[retrieval]'"
        ) from None
    return found
