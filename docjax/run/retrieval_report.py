"""What the report shows of rankings: systems, curves, queries won and lost, searches."""

import functools
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from docjax.explain import figures
from docjax.explain.compare_page import first_words
from docjax.explain.run_page import Hit, Query, Retrieval
from docjax.model.task_data import FileData
from docjax.run import task_report
from docjax.run.prepared import Prepared
from docjax.types import AFTER, Document, RankedQuery, Rankings, TaskOfRankings

QUERIES, HITS = 5, 3  # queries that are shown, and documents of each
WORDS = 60  # of a passage


def gathered(
    prepared: Prepared, data: FileData, scores: Mapping[str, Any]
) -> list[Retrieval]:
    """The tasks of a run that has ended which rank documents.

    scores: the last metrics of the run.
    """
    found = []
    for name, task in prepared.tasks.items():
        if isinstance(task, TaskOfRankings):
            rankings = task.rankings(prepared.run / name)
            if rankings is not None:
                found.append(_gathered(name, rankings, prepared, data, scores))
    return found


def _gathered(
    name: str,
    rankings: Rankings,
    prepared: Prepared,
    data: FileData,
    scores: Mapping[str, Any],
) -> Retrieval:
    parts = _shown(rankings)
    wanted = {
        document
        for query in itertools.chain(*parts.values())
        for run in rankings.runs.values()
        for document in _first(run, query.id)
    }
    read = rankings.documents or prepared.documents
    texts = {each.id: each for each in read() if each.id in wanted}
    shown_query = functools.partial(_query, rankings, _Passages(data, texts))
    folder = prepared.run / "figures"
    weights, curves = rankings.weights, rankings.curves
    return Retrieval(
        task=name,
        tables=task_report.of_run(prepared.config, [name], {AFTER: scores}, folder),
        curves=figures.weights(folder / f"fusion_{name}", weights, curves)
        if curves
        else None,
        metric=rankings.metric,
        systems=rankings.systems,
        **{part: list(map(shown_query, chosen)) for part, chosen in parts.items()},
    )


def _shown(rankings: Rankings) -> dict[str, list[RankedQuery]]:
    """The queries that are shown: won and lost most, and some from all over."""
    queries = rankings.queries
    own, other = rankings.systems
    gain = {query.id: query.scores[own] - query.scores[other] for query in queries}
    order = sorted(queries, key=lambda query: gain[query.id])
    places = np.linspace(0, len(queries) - 1, min(QUERIES, len(queries)))
    return {
        "won": [query for query in order[::-1][:QUERIES] if gain[query.id] > 0],
        "lost": [query for query in order[:QUERIES] if gain[query.id] < 0],
        "searches": [queries[int(place)] for place in places],
    }


def _first(run: Mapping[str, Mapping[str, float]], query: str) -> list[str]:
    return list(run.get(query, {}))[:HITS]


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


def _query(rankings: Rankings, passages: _Passages, query: RankedQuery) -> Query:
    [vector] = passages.model.encode_queries_of_any_length([query.text])
    relevant = set(query.relevant)
    return Query(
        text=query.text,
        scores=query.scores,
        hits={
            system: [
                passages.hit(name, vector, name in relevant)
                for name in _first(run, query.id)
            ]
            for system, run in rankings.runs.items()
        },
    )
