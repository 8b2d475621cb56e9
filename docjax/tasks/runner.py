"""Runs tasks and names their metrics: for a run, and for a user's own files."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from docjax.errors import UserError
from docjax.parts.annotations import shown
from docjax.progress.bars import bar
from docjax.types import Task, TaskData


def scores(tasks: Mapping[str, Task], data: TaskData, part: str) -> dict[str, float]:
    """Metrics named `eval/TASK/METRIC`; `PART/TASK/METRIC` for parts but "test". Raises
    UserError for a task that returns something else than numbers by name."""
    prefix = "eval" if part == "test" else part
    found = {}
    for name, task in tasks.items():
        with bar(name):
            metrics = _checked(task(data.of_task(name), part), name)
        for metric, value in metrics.items():
            found[f"{prefix}/{name}/{metric}"] = value
    return found


def _checked(metrics: Any, name: str) -> Mapping[str, float]:
    """The metrics of the task `name`."""
    if not isinstance(metrics, Mapping):
        raise UserError(
            f"task {name} returns {shown(metrics)}: return a dict of metrics"
        )
    for metric, value in metrics.items():
        array = np.asarray(value)
        if array.shape or array.dtype.kind not in "biuf":
            raise UserError(
                f"task {name}: its metric {metric!r} is {shown(value)}, not a number; "
                "return a float"
            )
    return metrics
