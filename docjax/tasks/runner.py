"""Runs tasks and names their metrics: for a run, and for a user's own files."""

from collections.abc import Mapping

from docjax.types import Task, TaskData


def scores(tasks: Mapping[str, Task], data: TaskData, part: str) -> dict[str, float]:
    """Metrics named `eval/TASK/METRIC`; `PART/TASK/METRIC` for parts but "test"."""
    prefix = "eval" if part == "test" else part
    return {
        f"{prefix}/{name}/{metric}": value
        for name, task in tasks.items()
        for metric, value in task(data.of_task(name), part).items()
    }
