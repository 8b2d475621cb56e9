"""What a task says of itself: the defaults, its options, and the cells of its tables."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from docjax.types import Reads, Rows, Table


class TaskDefaults:
    """The facts of `docjax.types.Task`, for a task that says nothing else."""

    command: ClassVar[str] = ""
    reads: ClassVar[Reads] = "texts"
    prompted: ClassVar[bool] = True
    keeps: ClassVar[str] = ""
    curves: ClassVar[tuple[str, ...]] = ()
    on_baselines: ClassVar[bool] = True

    def is_score(self, metric: str) -> bool:
        return True

    def tables(self, measured: Rows, published: Rows) -> Sequence[Table]:
        """None: the table of scores has all metrics."""
        return ()


def option(default: Any, help: str, **keywords: Any) -> Any:
    """A field of a task that `docjax evaluate` takes as an option.

    keywords: of `argparse.ArgumentParser.add_argument`. Beside these `name` is that of
    the option, where it is not the field's, and `value` makes the field's value of what
    was typed.
    """
    metadata = {"option": {"help": help} | keywords}
    return dataclasses.field(default=default, metadata=metadata)


def renamed(
    rows: Rows, names: Mapping[str, str], times: float = 1.0
) -> dict[str, dict[str, float]]:
    """The metrics of rows, multiplied, under other names; others are left out.

    names: column -> metric.
    """
    cells = {
        row: {name: times * of[key] for name, key in names.items() if key in of}
        for row, of in rows.items()
    }
    return {row: values for row, values in cells.items() if values}
