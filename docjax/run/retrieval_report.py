"""What the report shows of retrieval: systems, curves, queries won and lost, searches."""

import csv
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from docjax.explain import figures
from docjax.explain.compare_page import first_words
from docjax.explain.run_page import Hit, Query, Retrieval
from docjax.model.task_data import FileData
from docjax.retrieval import collection, trec
from docjax.retrieval.measures import TUNED
from docjax.run.prepared import Prepared
from docjax.tasks.retrieval import Retrieval as RetrievalTask
from docjax.types import Document, Run

SYSTEMS = ("bm25", "dense", "fused")
METRICS = (
    *("ndcg@10", "ndcg@20", "p@5", "p@10", "p@20", "mrr@100", "map"),
    *("recall@100", "recall@1000", "weight"),
)
QUERIES, HITS = 5, 3  # queries that are shown, and documents of each
WORDS = 60  # of a passage


def gathered(
    prepared: Prepared, data: FileData, scores: Mapping[str, Any]
) -> list[Retrieval]:
    """The retrieval tasks of a run that has ended.

    Args:
      data: the documents of the run and its model.
      scores: the last metrics of the run.
    """
    tasks = {
        name: task
        for name, task in prepared.tasks.items()
        if isinstance(task, RetrievalTask)
        and (prepared.run / name / "queries.jsonl").exists()
    }
    published = prepared.config.report.published if len(tasks) == 1 else None
    return [
        _gathered(name, task, prepared, data, _table(name, scores, published or {}))
        for name, task in tasks.items()
    ]


def _gathered(
    name: str,
    task: RetrievalTask,
    prepared: Prepared,
    data: FileData,
    table: Mapping[str, Mapping[str, float]],
) -> Retrieval:
    folder = prepared.run / name
    lines = (folder / "queries.jsonl").read_text("utf-8").split("\n")
    shown = _shown([json.loads(line) for line in lines if line])
    runs = {system: _run(folder / f"{system}.trec") for system in SYSTEMS}
    wanted = {
        document
        for record in itertools.chain(*shown.values())
        for run in runs.values()
        for document in _first(run, record["query"])
    }
    texts = {each.id: each for each in _documents(prepared, task) if each.id in wanted}
    passages = _Passages(data, texts)
    return Retrieval(
        task=name,
        metrics=table,
        curves=_curves(prepared.run / "figures" / f"fusion_{name}", folder),
        **{
            part: [_query(record, runs, passages) for record in chosen]
            for part, chosen in shown.items()
        },
    )


def _run(file: Path) -> Run:
    """The run in a file, which is empty if a system finds nothing.

    Ids with white space have no files: no documents are shown then.
    """
    return trec.read(file) if file.exists() and file.stat().st_size else {}


def _shown(
    records: Sequence[Mapping[str, Any]],
) -> dict[str, list[Mapping[str, Any]]]:
    """The queries that are shown: won and lost most, and some from all over."""
    order = sorted(records, key=_gain)
    places = np.linspace(0, len(records) - 1, min(QUERIES, len(records)))
    return {
        "won": [record for record in order[::-1][:QUERIES] if _gain(record) > 0],
        "lost": [record for record in order[:QUERIES] if _gain(record) < 0],
        "searches": [records[int(place)] for place in places],
    }


def _gain(record: Mapping[str, Any]) -> float:
    scores = record[TUNED]
    return scores["fused"] - scores["bm25"]


def _first(run: Run, query: str) -> list[str]:
    return list(run.get(query, {}))[:HITS]


def _documents(prepared: Prepared, task: RetrievalTask) -> Iterator[Document]:
    if task.path is None:
        return prepared.documents()
    return collection.opened(task.path).reader()(task.max_bad_fraction)


def _table(
    task: str,
    scores: Mapping[str, Any],
    published: Mapping[str, Mapping[str, float]],
) -> dict[str, dict[str, float]]:
    """Metric -> system -> score, of the run and of a paper."""
    table: dict[str, dict[str, float]] = {metric: {} for metric in METRICS}
    for name, value in scores.items():
        _, _, rest = name.partition(f"eval/{task}/")
        system, _, metric = rest.partition("/")
        if metric in table:
            table[metric][system] = value
    for system, values in published.items():
        for metric, value in values.items():
            row = table.setdefault(metric, {})
            row[f"{system} (published)"] = value
    return table


def _curves(figure: Path, folder: Path) -> Path:
    with (folder / "curves.csv").open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    weights, *columns = (list(map(float, column)) for column in zip(*rows, strict=True))
    curves = dict(zip(header[1:], columns, strict=True))
    return figures.weights(figure, weights, curves)


class _Passages:
    """The passage of a document that is nearest to a query."""

    def __init__(self, data: FileData, documents: Mapping[str, Document]):
        self.model, self.documents = data.model, documents
        read = data.encode_once(documents.values(), {}, passages=True)
        self.vectors = {each.id: each.passages for each in read}

    def hit(self, name: str, query: np.ndarray, is_relevant: bool) -> Hit:
        document = self.documents[name]
        scores = self.model.similarity(query, self.vectors[name])[0]
        _, pieces = self.model.cut.with_texts(document)
        best = pieces[int(scores.argmax())]
        sections = [section.heading for section in document.sections] or [""]
        text = first_words(best.text, WORDS)
        return Hit(document.title or name, sections[best.section], text, is_relevant)


def _query(
    record: Mapping[str, Any], runs: Mapping[str, Run], passages: _Passages
) -> Query:
    [vector] = passages.model.encode_queries_of_any_length([record["text"]])
    relevant = set(record["relevant"])
    return Query(
        text=record["text"],
        scores={system: record[TUNED][system] for system in SYSTEMS},
        hits={
            system: [
                passages.hit(name, vector, name in relevant)
                for name in _first(run, record["query"])
            ]
            for system, run in runs.items()
        },
    )
