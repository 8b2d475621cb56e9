"""Gathers analyses for the report, beside what SimLTE, DocSplit and CoLDE printed.

Most of their metrics are no scores: these stand here alone, not among the scores.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from docjax.data.parts_of_speech import KINDS
from docjax.explain import docsplit_tables as published
from docjax.explain import figures
from docjax.explain.run_page import Analyses
from docjax.run import matching_report
from docjax.tasks import redundancy
from docjax.tasks.few_shot import ALL, FewShot, ShotsCurve
from docjax.tasks.links import Links
from docjax.tasks.matching import Matching
from docjax.tasks.probe import Probe
from docjax.tasks.redundancy import BINS, Redundancy
from docjax.tasks.sentence_similarity import SentenceSimilarity
from docjax.tasks.word_attention import WordAttention
from docjax.types import Task

TEXTS = (Redundancy, SentenceSimilarity, WordAttention)
TUNED = ("/threshold", "/weight")  # what a task chooses is no score
BEFORE, AFTER = "before training", "after training"
RATIO = f"nouns, times {BEFORE}"
MINE = "these documents"  # the column of a run beside the papers' datasets
Rows = Mapping[str, Mapping[str, float]]  # what was measured -> name -> value
ByTask = Mapping[str, Rows]  # the name of a task -> its rows


def of_vectors(tasks: Mapping[str, Task]) -> dict[str, Task]:
    """The tasks that are scores of vectors, without the analyses of texts.

    Documents in another order are left out too: they would be read once more.
    """

    def apart(task: Task) -> bool:
        if isinstance(task, Matching):
            return task.shuffled is not None
        return isinstance(task, TEXTS)

    return {name: task for name, task in tasks.items() if not apart(task)}


def scores_alone(tasks: Mapping[str, Task], scores: Rows) -> dict[str, dict]:
    """The scores without what tasks choose, and without what the analyses show."""
    apart = tuple(f"eval/{name}/" for name in _names(tasks, (*TEXTS, ShotsCurve)))
    pairs = tuple(f"eval/{name}/" for name in _names(tasks, (Matching,)))

    def is_score(metric: str) -> bool:
        if metric.startswith(pairs):
            return metric.endswith(matching_report.SCORES)
        return not metric.startswith(apart) and not metric.endswith(TUNED)

    return {
        row: {k: v for k, v in values.items() if is_score(k)}
        for row, values in scores.items()
    }


def _names(tasks: Mapping[str, Task], kinds: tuple[type, ...]) -> list[str]:
    return [name for name, task in tasks.items() if isinstance(task, kinds)]


def gathered(tasks: Mapping[str, Task], scores: Rows, folder: Path) -> Analyses | None:
    """The analyses of a run that has ended; None for a run without one.

    Args:
      folder: of the figures.
      scores: the metrics before and after training and of the baselines, as the report
        has them.
    """
    of_kind = lambda kind: _by_task(tasks, scores, lambda task: isinstance(task, kind))
    full, few = of_kind(Probe), _by_task(tasks, scores, _draws_few)
    curves, texts, words = map(of_kind, (ShotsCurve, Redundancy, WordAttention))
    alike, pairs, linked = map(of_kind, (SentenceSimilarity, Matching, Links))
    if not any((full, few, curves, texts, words, alike, pairs, linked)):
        return None
    shots = _accuracies(_joined(curves))
    attention = _joined({name: _with_ratio(rows) for name, rows in words.items()})
    nouns = {"SimLTE, more than": {RATIO: published.NOUNS}}
    # Redundancy is a property of the texts: training does not change it.
    first = {name: next(iter(rows.values())) for name, rows in texts.items()}
    repeated = _joined({name: {"this run": row} for name, row in first.items()})
    cosines = ("inner", "inter"), _joined(alike), published.SENTENCE_SIMILARITY
    return Analyses(
        full=_probed(_joined(full), published.FULL),
        few=_probed(_joined(few), published.FEW),
        improvement=_improvement(full, few),
        links=_linked(_joined(linked)),
        shots=_accuracy_of_shots(shots),
        curve=figures.shots(folder / "shots", shots) if shots else None,
        attention=_table((*KINDS, RATIO), attention, nouns),
        bars=figures.kinds(folder / "word_attention", attention) if attention else None,
        redundancy=_table((*BINS, redundancy.ALL), repeated, published.REDUNDANCY),
        similarity=_table(*cosines),
        pairs=matching_report.table(_joined(pairs)),
        published_pairs=matching_report.published() if pairs else {},
    )


def _draws_few(task: Task) -> bool:
    """Whether a task draws few documents for a probe, as the papers do."""
    return isinstance(task, FewShot) and isinstance(task.classifier, Probe)


def _by_task(
    tasks: Mapping[str, Task], scores: Rows, shown: Callable[[Task], bool]
) -> dict[str, dict[str, dict[str, float]]]:
    """The metrics of each task that is `shown`, by name, of every row that has them."""
    by_task = {}
    for name in (name for name, task in tasks.items() if shown(task)):
        start = f"eval/{name}/"
        rows = {
            row: {
                metric.removeprefix(start): value
                for metric, value in values.items()
                if metric.startswith(start)
            }
            for row, values in scores.items()
        }
        by_task[name] = {row: values for row, values in rows.items() if values}
    return {name: rows for name, rows in by_task.items() if rows}


def _joined(by_task: ByTask) -> Rows:
    """The rows of all tasks; if there are several tasks, each row names its task."""
    several = len(by_task) > 1
    return {
        f"{row} ({name})" if several else row: values
        for name, rows in by_task.items()
        for row, values in rows.items()
    }


def _probed(rows: Rows, printed: published.Table) -> dict[str, dict[str, float]]:
    """Accuracy and macro-F1 of a run in percent, and of the papers' models."""
    of_run = dict(zip(published.MEASURES, ("accuracy", "macro_f1"), strict=True))
    cell = lambda dataset, measure: f"{dataset}, {measure}"
    own = {
        row: {cell(MINE, m): 100 * values[name] for m, name in of_run.items()}
        for row, values in rows.items()
    }
    papers = {
        model: {
            cell(dataset, measure): printed[measure][model][dataset]
            for dataset in published.DATASETS
            for measure in published.MEASURES
        }
        for model in printed["F1"]
    }
    names = [
        cell(dataset, measure)
        for dataset in (MINE, *published.DATASETS)
        for measure in published.MEASURES
    ]
    return _table(names, own, papers)


def _improvement(full: ByTask, few: ByTask) -> dict[str, dict[str, float]]:
    """The average improvement of the macro-F1: training over its start, with a single
    dataset, and what the papers compare; none without rows."""
    rows: dict[str, dict[str, float]] = {}
    printed: dict[str, dict[str, float]] = {}
    for column, by_task, table in (
        (published.ALL_DOCUMENTS, full, published.FULL),
        (published.FEW_DOCUMENTS, few, published.FEW),
    ):
        for name, of_task in by_task.items():
            before, after = (of_task.get(row, {}) for row in (BEFORE, AFTER))
            if before.get("macro_f1") and after:
                scores = ({MINE: row["macro_f1"]} for row in (after, before))
                gain = published.average_improvement(*scores)
                rows[f"{name}: {AFTER} over {BEFORE}"] = {column: gain}
        for ours, baseline, left_out, columns in published.COMPARED:
            if column not in columns:
                continue
            scores = (table["F1"][name] for name in (ours, baseline))
            without = f" without {', '.join(left_out)}" if left_out else ""
            gains = printed.setdefault(f"{ours} over {baseline}{without}", {})
            gains[column] = published.average_improvement(*scores, left_out)
    columns = published.ALL_DOCUMENTS, published.FEW_DOCUMENTS
    return _table(columns, rows, printed)


def _linked(rows: Rows) -> dict[str, dict[str, float]]:
    """Accuracy and F1 of citation links in percent, and DocSplit's accuracies."""
    own = {
        row: {"Acc": 100 * values["accuracy"], "F1": 100 * values["f1"]}
        for row, values in rows.items()
    }
    papers = {model: {"Acc": value} for model, value in published.LINKS.items()}
    return _table(published.MEASURES, own, papers)


def _accuracy_of_shots(
    shots: Mapping[str, Mapping[str, tuple[float, float]]],
) -> dict[str, dict[str, float]]:
    """The accuracy with each number of documents of a class, and the papers'."""
    counts = {count for row in shots.values() for count in row} | {"5", ALL}
    counts = sorted(counts, key=lambda count: (count == ALL, len(count), count))
    means = {name: {k: mean for k, (mean, _) in x.items()} for name, x in shots.items()}
    return _table(counts, means, published.NEWS_ACCURACY)


def _accuracies(rows: Rows) -> dict[str, dict[str, tuple[float, float]]]:
    """Shots -> the accuracy and its deviation, of each row."""
    end = "/accuracy"
    return {
        name: {
            metric.removesuffix(end): (value, values.get(f"{metric}_std", 0.0))
            for metric, value in values.items()
            if metric.endswith(end)
        }
        for name, values in rows.items()
    }


def _with_ratio(rows: Rows) -> dict[str, dict[str, float]]:
    """The rows with the attention to nouns as a multiple of that before training."""
    before = rows.get(BEFORE, {}).get("noun")
    return {
        name: {**row, RATIO: row["noun"] / before} if before and "noun" in row else row
        for name, row in rows.items()
    }


def _table(
    names: Sequence[str], rows: Rows, printed: Rows
) -> dict[str, dict[str, float]]:
    """Columns of rows, and below them of what was printed; none without rows."""
    if not rows:
        return {}
    rows = {**rows, **{f"{name} (published)": row for name, row in printed.items()}}
    columns = {
        name: {row: values[name] for row, values in rows.items() if name in values}
        for name in names
    }
    return {name: cells for name, cells in columns.items() if cells}
