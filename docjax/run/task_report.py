"""What the report shows of the tasks of a run: scores, tables and figures.

Each task says which of its metrics are scores and what else it shows
(`docjax.types.Task`). Published figures come from the config (`report.published`).
"""

import dataclasses
import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from docjax.explain import figures
from docjax.explain.run_page import Shown
from docjax.run.fields import RunConfig
from docjax.types import Drawing, Rows, Table, Task

logger = logging.getLogger(__name__)

Tasks = Mapping[str, Task]
Published = Mapping[str, Rows]  # the name of a task -> row -> metric -> value


def scores(tasks: Tasks, rows: Rows) -> dict[str, dict[str, float]]:
    """The metrics of each row that stand in the table of scores, those of tasks that a
    run had before among them."""

    def is_chosen(metric: str) -> bool:
        _, name, rest = metric.split("/", 2)
        return name not in tasks or tasks[name].is_score(rest)

    return {
        row: {metric: value for metric, value in values.items() if is_chosen(metric)}
        for row, values in rows.items()
    }


def curves(tasks: Tasks) -> list[str]:
    """The metrics of tasks that are drawn against the training step."""
    return [
        f"{part}/{name}/{metric}"
        for name, task in tasks.items()
        for metric in task.curves
        for part in ("validation", "eval")
    ]


def published(given: Any, tasks: Tasks) -> Published:
    """What `report.published` gives for each task.

    Figures by row and metric belong to the only task; with several tasks, the name of
    a task stands above them. Figures of no task are left out, with a warning.
    """
    if not given:
        return {}
    are_rows = lambda node: all(isinstance(values, Mapping) for values in node.values())
    by_task = are_rows(given) and all(map(are_rows, given.values()))
    if are_rows(given) and not by_task and len(tasks) == 1:
        return {name: given for name in tasks}
    known = {name: rows for name, rows in given.items() if by_task and name in tasks}
    if len(known) < len(given):
        names = ", ".join(name for name in given if name not in known)
        logger.warning(
            "report.published: %s names no task: give dict(TASK=dict(ROW=dict(METRIC="
            "value))), with a task of %s",
            *(names, ", ".join(tasks) or "none"),
        )
    return known


def tables(tasks: Tasks, rows: Rows, figures_of: Published) -> list[Table]:
    """The tables of all tasks. Those of one title become one, whose rows name the task.

    rows: all metrics before and after training and of the baselines.
    """
    by_title: dict[str, dict[str, Table]] = {}
    for name, task in tasks.items():
        if measured := _of_task(name, rows):
            for table in _tables(name, task, measured, figures_of.get(name, {})):
                by_title.setdefault(table.title, {})[name] = table
    return [_joined(of_tasks) for of_tasks in by_title.values()]


def of_run(
    config: RunConfig, names: Collection[str], rows: Rows, folder: Path
) -> list[Shown]:
    """The tables of the tasks `names` of a run, with their figures in `folder`."""
    tasks = {name: part.built for name, part in config.tasks.items()}
    given = published(config.report.published, tasks)
    chosen = {name: task for name, task in tasks.items() if name in names}
    return shown(tables(chosen, rows, given), folder)


def shown(found: Sequence[Table], folder: Path) -> list[Shown]:
    """The tables, with their figures in `folder`."""
    return [
        Shown(table, table.drawing and figures.drawing(folder, table.drawing))
        for table in found
    ]


def _of_task(name: str, rows: Rows) -> dict[str, dict[str, float]]:
    """The metrics of a task, of every row that has some."""
    start = f"eval/{name}/"
    of_task = {
        row: {
            metric.removeprefix(start): value
            for metric, value in values.items()
            if metric.startswith(start)
        }
        for row, values in rows.items()
    }
    return {row: values for row, values in of_task.items() if values}


def _tables(name: str, task: Task, measured: Rows, figures: Rows) -> Sequence[Table]:
    """The tables of a task, with its published figures; if it has no table of its own,
    these make one."""
    printed = {f"{row} (published)": values for row, values in figures.items()}
    found = task.tables(measured, printed)
    if printed and not found:
        return [Table(name, {**measured, **printed})]
    return found


def _joined(of_tasks: Mapping[str, Table]) -> Table:
    """One table of the tables of several tasks."""
    first = next(iter(of_tasks.values()))
    if len(of_tasks) == 1:
        return first
    drawings = {name: t.drawing for name, t in of_tasks.items() if t.drawing}
    columns = (name for table in of_tasks.values() for name in table.columns)
    return dataclasses.replace(
        first,
        rows=_with_names({name: table.rows for name, table in of_tasks.items()}),
        columns=tuple(dict.fromkeys(columns)),
        drawing=_drawn_together(drawings) if drawings else None,
    )


def _drawn_together(drawings: Mapping[str, Drawing]) -> Drawing:
    return dataclasses.replace(
        next(iter(drawings.values())),
        rows=_with_names({name: each.rows for name, each in drawings.items()}),
        deviations=_with_names(
            {name: each.deviations for name, each in drawings.items()}
        ),
    )


def _with_names(by_task: Mapping[str, Rows]) -> dict[str, Mapping[str, float]]:
    """The rows of all tasks, each with the name of its task."""
    return {
        f"{row} ({name})": values
        for name, rows in by_task.items()
        for row, values in rows.items()
    }
