"""The report's first screen: the verdict, the table of systems, and the judgement."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from docjax.explain.run_page import Cell, FirstScreen
from docjax.model.load import judgement
from docjax.run import compared
from docjax.run import verdict as verdict_lib
from docjax.run.prepared import Prepared
from docjax.run.verdict import TRAINED, System
from docjax.types import Outcome, Rankings, Rows, TaskOfRankings

KEPT = {
    "trained": "the trained model",
    "mean": "the trained model",
    "words": "the run's word vectors",
    "start": "the run's start",
}
# What a run keeps, and whether it was shown to be better than its start.
JUDGED = {
    ("trained", True): "The run keeps what it trained: that was better than its start",
    ("mean", True): "The run keeps what it trained, without attention between sections",
    ("words", True): "The run keeps the word vectors of the corpus, without the steps",
    (
        "words",
        False,
    ): "The run keeps the word vectors of the corpus: nothing showed that "
    "the steps help",
    ("start", False): "The run keeps its start: nothing showed that training helps",
}
NO_SCORES = "No labelled test document was scored, so nothing tells which vectors win."
LABEL = (
    'To find out, give a few hundred documents a "label", half of them with "split": '
    '"train", half with "split": "test".'
)
NOT_TOLD = (
    "The scores of this run stand below: its tasks do not tell what of a difference is "
    "noise."
)
# What every task of rankings has scored, the simplest first.
SEARCHES = {"bm25": "words (BM25)", "dense": "vectors", "fused": "words and vectors"}
RANKED = (
    "how near to the top the relevant documents of a query stand, mean over queries"
)


def first_screen(
    prepared: Prepared, scores: Rows, data: Mapping[str, compared.Read]
) -> FirstScreen:
    """The first screen of a run.

    Args:
      scores: the metrics of each row by name, as `report` gathers them.
      data: the encoded documents of each row.
    """
    judged = judgement(prepared.run)
    keeps = judged.get("keeps", "trained")
    names = (
        KEPT.get(keeps, KEPT["trained"]),
        compared.encoder_name(prepared.config.init or ""),
    )
    path = prepared.run / "outcomes.json"
    systems = compared.of_run(path, prepared.tasks, scores, data, names)
    if systems and systems[0].kind == TRAINED:
        finding, advice = verdict_lib.verdict(_tried(prepared), systems, keeps)
    elif searches := _searches(prepared):
        tried, systems = searches
        finding, advice = verdict_lib.of_search(tried, systems)
    else:
        systems, finding, advice = [], NOT_TOLD if scores else "", ""
    if not scores:
        finding, advice = NO_SCORES, LABEL
    shown = _shown(systems)
    return FirstScreen(
        finding=finding.replace("TF-IDF", "TF-IDF word counts", 1),
        advice=advice,
        judged=JUDGED.get((keeps, judged.get("helps", True)), "") if judged else "",
        reason=judged.get("reason", ""),
        rows=_cells(systems, shown),
        meanings=[
            f"{shown[metric]}: {outcome.meaning}."
            for metric, outcome in _outcomes(systems).items()
        ],
        notes=[system.note for system in systems if system.note],
    )


def _searches(prepared: Prepared) -> tuple[str, list[System]] | None:
    """What the first task of rankings searched, and its ways to search, the simplest
    first; None without such a task."""
    for name, task in prepared.tasks.items():
        if not isinstance(task, TaskOfRankings):
            continue
        rankings = task.rankings(prepared.run / name)
        if rankings and rankings.queries:
            tried = f"On {len(rankings.queries):,} test queries"
            return tried, [_search(rankings, way) for way in SEARCHES]
    return None


def _search(rankings: Rankings, way: str) -> System:
    scores = [query.scores[way] for query in rankings.queries]
    outcome = Outcome(rankings.metric, "search", RANKED, scores, of_documents=True)
    return System("search", SEARCHES[way], {rankings.metric: outcome})


def _tried(prepared: Prepared) -> str:
    rows = prepared.scored("test")
    labels = {prepared.corpus.labels[row] for row in rows.tolist()}
    return f"On {len(rows):,} test documents with {len(labels):,} labels"


def _outcomes(systems: Sequence[System]) -> dict[str, Any]:
    """An outcome of each metric."""
    return {m: each for system in systems for m, each in system.outcomes.items()}


def _shown(systems: Sequence[System]) -> dict[str, str]:
    """The name of each metric; where tasks share a name, with that of the task."""
    outcomes = _outcomes(systems)
    counts = collections.Counter(outcome.name for outcome in outcomes.values())
    return {
        metric: outcome.name
        if counts[outcome.name] == 1
        else f"{outcome.name} ({metric.split('/')[1]})"
        for metric, outcome in outcomes.items()
    }


def _cells(
    systems: Sequence[System], shown: Mapping[str, str]
) -> dict[str, dict[str, Cell]]:
    """The cells of each system by the name of the score."""
    best = verdict_lib.clear_best(systems)
    rows: dict[str, dict[str, Cell]] = {}
    for system in systems:
        row = rows[system.name.removeprefix("the ")] = {}
        for metric, outcome in system.outcomes.items():
            row[shown[metric]] = Cell(
                verdict_lib.number(float(np.mean(outcome.values))),
                "–".join(map(verdict_lib.number, verdict_lib.interval(outcome))),
                best.get(metric) == system.name,
            )
    return rows
