"""Tables of matched pairs for the report, in the layout of CoLDE's Table 1."""

from collections.abc import Mapping

from docjax.explain.colde_tables import PUBLISHED
from docjax.tasks.matching import FIXED
from docjax.tasks.matching_consistency import consistency

SCORES = ("/f1", "/accuracy")  # of the chosen threshold: they stand among the scores
COLUMNS = {"P": "precision", "R": "recall", "F1": "f1", "Acc": "accuracy"}
Table = dict[str, dict[str, float]]  # column -> row -> value


def table(rows: Mapping[str, Mapping[str, float]]) -> Table:
    """The measures of each row at the chosen threshold and at the fixed thresholds.

    A measure that an older run does not have is left out.

    Args:
      rows: the metrics of `matching`, by the name of a model.
    """
    columns: Table = {column: {} for column in COLUMNS} if rows else {}
    for name, metrics in rows.items():
        chosen = f"{metrics['threshold']:.2f} (chosen)"
        ends = {chosen: ""} | {str(fixed): f"@{fixed}" for fixed in FIXED}
        for threshold, end in ends.items():
            for column, metric in COLUMNS.items():
                if f"{metric}{end}" in metrics:
                    cell = metrics[f"{metric}{end}"]
                    columns[column][f"{name}, above {threshold}"] = cell
    return columns


def published() -> Table:
    """CoLDE's Table 1, and what its figures say of each other.

    Two columns hold the share of similar pairs that precision, recall and accuracy
    imply, as printed and with precision and recall exchanged; another one the F1 of
    precision and recall where it is not the F1 that was printed.
    """
    implied = ("similar pairs", "P and R exchanged", "F1 by P and R")
    columns: Table = {column: {} for column in (*COLUMNS, *implied)}
    for dataset, models in PUBLISHED.items():
        for model, figures in models.items():
            row = f"{dataset}: {model}"
            for column, metric in COLUMNS.items():
                columns[column][row] = figures[metric]
            said = consistency(**figures)
            columns["similar pairs"][row] = said.similar
            columns["P and R exchanged"][row] = said.exchanged
            if not said.fits:
                columns["F1 by P and R"][row] = said.f1
    return columns
