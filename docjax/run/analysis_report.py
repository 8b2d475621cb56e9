"""Gathers the analyses of SimLTE and DocSplit for the report, beside what they printed.

Their metrics stand in tables of their own, not among the scores: most are no scores.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from docjax.data.parts_of_speech import KINDS
from docjax.explain import docsplit_tables as published
from docjax.explain import figures
from docjax.explain.run_page import Analyses
from docjax.tasks import redundancy
from docjax.tasks.few_shot import ALL, ShotsCurve
from docjax.tasks.redundancy import BINS, Redundancy
from docjax.tasks.sentence_similarity import SentenceSimilarity
from docjax.tasks.word_attention import WordAttention
from docjax.types import Task

TEXTS = (Redundancy, SentenceSimilarity, WordAttention)
BEFORE = "before training"
RATIO = f"nouns, times {BEFORE}"
Rows = Mapping[str, Mapping[str, float]]  # what was measured -> name -> value


def of_vectors(tasks: Mapping[str, Task]) -> dict[str, Task]:
    """The tasks that are scores of vectors, without the analyses of texts."""
    return {name: task for name, task in tasks.items() if not isinstance(task, TEXTS)}


def scores_alone(tasks: Mapping[str, Task], scores: Rows) -> dict[str, dict]:
    """The scores without the metrics that the analyses show."""
    kinds = (*TEXTS, ShotsCurve)
    names = [name for name, task in tasks.items() if isinstance(task, kinds)]
    apart = tuple(f"eval/{name}/" for name in names)
    return {
        row: {k: v for k, v in values.items() if not k.startswith(apart)}
        for row, values in scores.items()
    }


def gathered(tasks: Mapping[str, Task], scores: Rows, folder: Path) -> Analyses | None:
    """The analyses of a run that has ended; None for a run without one.

    Args:
      folder: of the figures.
      scores: the metrics before and after training and of the baselines, as the report
        has them.
    """
    kinds = (ShotsCurve, WordAttention, Redundancy, SentenceSimilarity)
    found = {kind: _rows(tasks, kind, scores) for kind in kinds}
    if not any(found.values()):
        return None
    shots, attention = _accuracies(found[ShotsCurve]), found[WordAttention]
    # Redundancy is a property of the texts: training does not change it.
    repeated = dict(zip(["this run"], found[Redundancy].values()))
    counts = {count for row in shots.values() for count in row} | {"5", ALL}
    counts = sorted(counts, key=lambda count: (count == ALL, len(count), count))
    means = {name: {k: mean for k, (mean, _) in x.items()} for name, x in shots.items()}
    return Analyses(
        shots=_table(counts, means, published.NEWS_ACCURACY),
        curve=figures.shots(folder / "shots", shots) if shots else None,
        attention=_table((*KINDS, RATIO), _with_ratio(attention), {}),
        bars=figures.kinds(folder / "word_attention", attention) if attention else None,
        redundancy=_table((*BINS, redundancy.ALL), repeated, published.REDUNDANCY),
        similarity=_table(
            ("inner", "inter"),
            found[SentenceSimilarity],
            published.SENTENCE_SIMILARITY,
        ),
    )


def _rows(tasks: Mapping[str, Task], kind: type, scores: Rows) -> dict[str, dict]:
    """The metrics of the first task of a kind, by name, of what has them."""
    name = next((name for name, task in tasks.items() if isinstance(task, kind)), None)
    start = f"eval/{name}/"
    rows = {
        row: {
            k.removeprefix(start): v for k, v in values.items() if k.startswith(start)
        }
        for row, values in scores.items()
    }
    return {row: values for row, values in rows.items() if values}


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
