"""The metrics of trec_eval, by ir-measures: of each query, and of systems."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

from docjax.data import once
from docjax.errors import UserError, library
from docjax.retrieval import paired, trec
from docjax.types import Qrels, Run

COMPARED = "compared"  # the name of a run that systems are compared with
TUNED = "ndcg@10"  # the metric that chooses the weight of a fusion
METRICS = {
    "ndcg@10": "nDCG@10",
    "ndcg@20": "nDCG@20",
    "p@5": "P@5",
    "p@10": "P@10",
    "p@20": "P@20",
    "mrr@10": "RR@10",
    "mrr@100": "RR@100",
    "map": "AP",
    "recall@100": "R@100",
    "recall@1000": "R@1000",
}

BySystem = dict[str, dict[str, dict[str, float]]]  # system -> metric -> query

logger = logging.getLogger(__name__)


def of_systems(systems: Mapping[str, Run], qrels: Qrels) -> BySystem:
    """Each metric of each query, by system. Raises UserError for a system that ranks
    documents for none of the queries."""
    for system, run in systems.items():
        check_queries(system, run, qrels)
        if missing := sum(not run.get(query) for query in qrels):
            text = "%s has no documents for %d of %d test queries: they count as 0"
            logger.warning(text, system, missing, len(qrels))
    return {system: _by_metric(qrels, run, METRICS) for system, run in systems.items()}


def means(by_query: BySystem, base: str | None = None) -> dict[str, float]:
    """`SYSTEM/METRIC` of each system, and the gains over the system `base`."""
    scores = {}
    for system, values in by_query.items():
        for metric, of_query in values.items():
            scores[f"{system}/{metric}"] = sum(of_query.values()) / len(of_query)
            if base not in (None, system):
                gains = paired.gain(of_query, by_query[base][metric])
                scores |= {f"{system}/{metric}_{k}": v for k, v in gains.items()}
    return scores


def read(file: Path, qrels: Qrels) -> Run:
    """The run in a file; the log counts queries and documents without a judgement.
    Raises UserError as `trec.read`."""
    run = trec.read(file)
    known = run.keys() & qrels.keys()
    if unknown := len(run) - len(known):
        text = "%s: %d of its %d queries are not test queries: left out"
        once.warn(text, str(file), unknown, len(run))
    ranked = sum(len(run[query]) for query in known)
    judged = sum(len(run[query].keys() & qrels[query].keys()) for query in known)
    if judged < ranked:
        text = "%s: %d of %d ranked documents have no judgement: they count as wrong"
        once.warn(text, str(file), ranked - judged, ranked)
    return run


def of_queries(qrels: Qrels, run: Run, metric: str) -> Mapping[str, float]:
    """The metric of each query of `qrels`; 0 for a query without ranked documents.

    As in trec_eval, scores are float32, and of equal ones the greater id comes first.
    """
    return _by_metric(qrels, run, [metric])[metric]


def _by_metric(
    qrels: Qrels, run: Run, metrics: Iterable[str]
) -> dict[str, dict[str, float]]:
    """Each metric of each query of `qrels`, as `of_queries`."""
    measures = ir_measures()
    wanted = {metric: measures.parse_measure(METRICS[metric]) for metric in metrics}
    # ir-measures' own RR@k has other ties: RR without k, and ranks below k are 0.
    read = {
        metric: measures.RR if measure.NAME == "RR" else measure
        for metric, measure in wanted.items()
    }
    ranked = {query: run.get(query, {}) for query in qrels}
    by_measure = {measure: dict.fromkeys(qrels, 0.0) for measure in read.values()}
    for each in measures.iter_calc(list(by_measure), qrels, ranked):
        by_measure[each.measure][each.query_id] = each.value
    values = {}
    for metric, measure in wanted.items():
        is_cut = measure.NAME == "RR"
        least = 1 / (measure["cutoff"] + 0.5) if is_cut else -1.0  # between two ranks
        of_query = by_measure[read[metric]].items()
        values[metric] = {q: value if value > least else 0.0 for q, value in of_query}
    return values


def ir_measures() -> ModuleType:
    """The library ir-measures. Raises UserError if it is not installed."""
    return library("ir_measures", "retrieval", "retrieval")


def check_queries(system: str, run: Run, qrels: Qrels) -> None:
    """Raises UserError for a run without any of the queries of the judgements."""
    if run.keys().isdisjoint(qrels):
        raise UserError(
            f"{system}: none of its {len(run)} queries is one of the {len(qrels)} test "
            "queries: give a run of these queries"
        )
