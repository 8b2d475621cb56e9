"""What a task hands to the report of a run: tables, figures and rankings.

`docjax.types.Task` says when. `docjax.explain` draws all of it, whatever the task.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

BEFORE, AFTER = "before training", "after training"  # rows that a run has measured

Rows = Mapping[str, Mapping[str, float]]  # row -> metric or column -> value


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A figure of rows, a colour each: lines over the columns, or bars.

    Attributes:
      name: of the files in the run's folder `figures`.
      caption: the words below the figure on the page.
      x, y: what the columns and the values are.
      deviations: error bars of the lines.
    """

    kind: Literal["lines", "bars"]
    name: str
    rows: Rows
    title: str
    caption: str
    y: str
    x: str = ""
    deviations: Rows = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of a task, and its figure.

    The tables of several tasks with the same title become one.

    Attributes:
      rows: row -> column -> value; a row may lack a column.
      columns: in their order; empty: as the rows have them.
      note: what the values are, in a sentence below the table.
      corner: the words above the names of the rows.
      decimals: of each value; None: four digits.
    """

    title: str
    rows: Rows
    columns: Sequence[str] = ()
    note: str = ""
    corner: str = ""
    decimals: int | None = None
    drawing: Drawing | None = None

    def by_column(self) -> dict[str, dict[str, float]]:
        """Column -> row -> value, of the columns that have a value."""
        every = dict.fromkeys(name for row in self.rows.values() for name in row)
        names = [name for name in self.columns or every if name in every]
        return {
            name: {
                row: cells[name] for row, cells in self.rows.items() if name in cells
            }
            for name in names
        }


class RankedQuery(NamedTuple):
    """A query with its answers, and the score of each system."""

    id: str
    text: str
    relevant: Sequence[str]  # ids of documents
    scores: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Rankings:
    """The documents that several systems found for the queries of a task.

    Attributes:
      runs: system -> query id -> document id -> score, best first.
      metric: what the scores of the queries are.
      systems: two systems; the report shows the queries on which the first gains and
        loses most against the second.
      weights, curves: the score of each fused system by the weight of its vectors.
      documents: the documents that were ranked; None: the documents of the run.
    """

    queries: Sequence[RankedQuery]
    runs: Mapping[str, Mapping[str, Mapping[str, float]]]
    metric: str
    systems: tuple[str, str]
    weights: Sequence[float] = ()
    curves: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    documents: Callable[[], Iterator[Any]] | None = None
