"""What a retrieval task keeps beside its scores: TREC runs, curves, scores by query.

`read` gives it back to the report.
"""

import csv
import itertools
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from docjax.retrieval import fusion, measures, trec
from docjax.retrieval.measures import TUNED, BySystem
from docjax.types import Document, Qrels, RankedQuery, Rankings, Run, TaskData

SYSTEMS = ("bm25", "dense", "fused")  # whose searches the report shows

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


def read(
    folder: Path, documents: Callable[[], Iterator[Document]] | None
) -> Rankings | None:
    """The rankings that `keep` wrote to a folder; None if it wrote none.

    Ids with white space have no TREC runs: no documents are shown then.
    """
    if not (folder / "queries.jsonl").exists():
        return None
    lines = (folder / "queries.jsonl").read_text("utf-8").split("\n")
    weights, curves = _read_curves(folder / "curves.csv")
    return Rankings(
        queries=[_query(line) for line in lines if line],
        runs={system: _read_run(folder / f"{system}.trec") for system in SYSTEMS},
        metric=TUNED,
        systems=("fused", "bm25"),
        weights=weights,
        curves=curves,
        documents=documents,
    )


def by_query(
    qrels: Qrels, values: BySystem, texts: Mapping[str, str] | None = None
) -> str:
    """A line of JSON for each query: what is relevant, and all metrics of the systems.

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


def _read_run(file: Path) -> Run:
    """The run in a file, which is empty if a system finds nothing."""
    return trec.read(file) if file.exists() and file.stat().st_size else {}


def _read_curves(file: Path) -> tuple[list[float], dict[str, list[float]]]:
    """The weights of the vectors, and the score of each fused system with each."""
    with file.open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    weights, *columns = (list(map(float, column)) for column in zip(*rows, strict=True))
    return weights, dict(zip(header[1:], columns, strict=True))


def _query(line: str) -> RankedQuery:
    record = json.loads(line)
    scores = {system: record[TUNED][system] for system in SYSTEMS}
    return RankedQuery(record["query"], record["text"], record["relevant"], scores)
