"""The systems of the report's first table, with what their scores could owe to chance.

They are what the run keeps, its encoder alone, the encoder beside reduced TF-IDF, and
TF-IDF. RUN/outcomes.json keeps what was computed, so that a report is written again at
once.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from docjax.errors import UserError
from docjax.run import baselines
from docjax.run.verdict import BESIDE, ENCODER, START, TRAINED, WORDS, System
from docjax.storage import atomic, json_file
from docjax.types import AFTER, BEFORE, Outcome, Rows, Task, TaskData, TaskWithOutcomes

TFIDF = (
    "TF-IDF: a number for each word of the corpus, higher for words that few documents "
    "have"
)
SHORT = f"A task that needs short vectors gets {baselines.WIDTH} numbers."
NOT_TELLING = r"/|\.+|model|snapshots|[0-9a-f]{40}"  # parts of paths
Read = Callable[[], TaskData]


def of_run(
    path: Path,
    tasks: Mapping[str, Task],
    scores: Rows,
    data: Mapping[str, Read],
    names: tuple[str, str],
) -> list[System]:
    """The systems that tasks with outcomes have scored, the run's own first.

    Args:
      path: RUN/outcomes.json.
      scores: the metrics of each row by name, as `report` gathers them.
      data: the encoded documents of rows; a row without them is no system.
      names: of what the run keeps, and of the encoder `init`.
    """
    known = json_file.read(path) if path.exists() else {}
    found = []
    known_rows = {name: scores[name] for name in scores if name in data}
    for kind, row, name, note in _rows(known_rows, *names):
        ways = (row, baselines.REDUCED) if kind == WORDS else (row,)
        read = [data[way] for way in ways if way in data]
        kept = known.get(row, {})
        if kept.get("scores") != scores[row]:
            of_tasks = _outcomes(tasks, read)
            fields = {metric: each._asdict() for metric, each in of_tasks.items()}
            kept = known[row] = {"scores": scores[row], "outcomes": fields}
        outcomes = {name: Outcome(**each) for name, each in kept["outcomes"].items()}
        in_order = sorted(outcomes.items(), key=lambda item: not item[1].of_documents)
        found.append(System(kind, name, dict(in_order), note))
    atomic.write_text(path, json.dumps(known) + "\n")
    return [system for system in found if system.outcomes]


def encoder_name(init: str) -> str:
    """The name of an encoder as people say it: all-MiniLM-L6-v2.

    `init` is a hub name, perhaps with a revision, or a folder; a folder called "model",
    or after a commit in the hub's cache, has the name of the folder above it.
    """
    parts = Path(init.partition("@")[0]).parts
    telling = [part for part in parts if not re.fullmatch(NOT_TELLING, part)]
    return telling[-1].rpartition("--")[2] if telling else init


def _rows(scores: Rows, own: str, encoder: str) -> list[tuple[str, str, str, str]]:
    """The kind, the name in `scores`, the name and a note of each system."""
    rows = [(TRAINED, AFTER, own, "")] if AFTER in scores else []
    plain = [name for name in scores if name.startswith(baselines.INIT)]
    if plain:
        best = max(plain, key=lambda name: np.mean(list(scores[name].values())))
        ways = _ways(baselines.INIT, best, scores)
        rows.append((ENCODER, best, encoder, f"{encoder}: the encoder alone ({ways})."))
    elif BEFORE in scores:
        rows.append((START, BEFORE, "before training", ""))
    if baselines.BESIDE in scores:
        name = f"{encoder} beside LSA"
        note = (
            f"{name}: its vectors (all words) and TF-IDF reduced to {baselines.WIDTH} "
            "numbers (latent semantic analysis), each of length 1, side by side, "
            "without training."
        )
        rows.append((BESIDE, baselines.BESIDE, name, note))
    if baselines.ALL_WORDS in scores:
        ways = _ways(baselines.WORDS, baselines.ALL_WORDS, scores)
        rows.append(
            (WORDS, baselines.ALL_WORDS, "TF-IDF", f"{TFIDF} ({ways}). {SHORT}")
        )
    return rows


def _ways(start: str, shown: str, scores: Rows) -> str:
    """Which way of a baseline the table shows, and where its other way stands."""
    others = [row for row in scores if row.startswith(start) and row != shown]
    names = " and ".join(row.removeprefix(start) for row in others)
    where = f"; for {names} see “All scores”" if names else ""
    return f"{shown.removeprefix(start)}{where}"


def _outcomes(tasks: Mapping[str, Task], data: Sequence[Read]) -> dict[str, Outcome]:
    """The outcomes of the tasks, each from the first of `data` that it can read."""
    found: dict[str, Outcome] = {}
    for name, task in tasks.items():
        if isinstance(task, TaskWithOutcomes):
            found |= _of_task(name, task, data)
    return found


def _of_task(name: str, task: Any, data: Sequence[Read]) -> dict[str, Outcome]:
    for read in data:
        try:
            task.check(read(), "test")
            outcomes = task.outcomes(read(), "test")
        except UserError:
            continue
        return {f"eval/{name}/{metric}": each for metric, each in outcomes.items()}
    return {}
