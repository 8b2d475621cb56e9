"""What a retrieval task keeps beside its scores: TREC runs, curves, scores by query."""

import itertools
import json
import logging
from collections.abc import Iterable, Mapping, Sequence

from docjax.retrieval import fusion, measures, trec
from docjax.retrieval.measures import BySystem
from docjax.types import Qrels, Run, TaskData

logger = logging.getLogger(__name__)


def keep(
    data: TaskData,
    queries: Mapping[str, str],
    qrels: Qrels,
    runs: Mapping[str, Run],
    curves: Mapping[str, Sequence[float]],
    values: BySystem,
) -> None:
    """Keeps the runs of all systems, the curves of the weight, and scores by query.

    Only queries of `qrels` are kept, so that the runs of several folds can be joined.

    Args:
      values: `measures.of_systems` of the runs.
    """
    runs = {
        system: {query: run[query] for query in qrels if query in run}
        for system, run in runs.items()
    }
    _keep_runs(data, qrels, runs)
    rows = zip(fusion.WEIGHTS, *curves.values(), strict=True)
    table = [("weight", *curves), *rows]
    text = "".join(",".join(map(str, row)) + "\n" for row in table)
    data.keep("curves.csv", text)
    data.keep("queries.jsonl", by_query(qrels, values, queries))


def by_query(
    qrels: Qrels, values: BySystem, texts: Mapping[str, str] | None = None
) -> str:
    """A line of JSON for each query: what is relevant, and all metrics of the systems.

    Args:
      texts: of the queries; None leaves them out.
    """
    lines = [
        {"query": query}
        | ({} if texts is None else {"text": texts[query]})
        | {"relevant": [name for name, gain in qrels[query].items() if gain > 0]}
        | {
            metric: {system: of[metric][query] for system, of in values.items()}
            for metric in measures.METRICS
        }
        for query in qrels
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _keep_runs(data: TaskData, queries: Iterable[str], runs: Mapping[str, Run]) -> None:
    ids = itertools.chain(*(of for run in runs.values() for of in run.values()))
    if any(len(name.split()) != 1 for name in itertools.chain(queries, ids)):
        logger.warning("ids have white space: no TREC runs are written")
        return
    for system, run in runs.items():
        data.keep(f"{system}.trec", "".join(trec.lines(run, system)))
