"""The metrics of a TREC run: somebody's ranking, in place of a model."""

from collections.abc import Callable
from pathlib import Path

from docjax.errors import UserError
from docjax.retrieval import collection, measures, systems
from docjax.retrieval.measures import COMPARED
from docjax.tasks.kept_rankings import by_query


def of_file(
    folder: Path,
    run: Path,
    compare: str | None = None,
    fold: int | None = None,
    keep: Callable[[str, str], None] | None = None,
) -> dict[str, float]:
    """`run/METRIC` of a TREC run on the test queries of a collection, or on one fold.

    Args:
      compare: another TREC run, see `measures.means`.
      keep: writes a file, its name and its text; it gets the metrics of each query.

    Raises:
      UserError: for a run that cannot be read, or that has none of the queries, and for
        a comparison with a system, which a file does not have.
    """
    if compare in systems.NAMES:
        raise UserError(
            f"--compare {compare}: {run} is a run and has no other systems; give a "
            "TREC run, or a model in place of the run"
        )
    qrels = collection.read_test(folder, fold)
    files = {"run": run} | ({COMPARED: Path(compare)} if compare else {})
    runs = {name: measures.read(file, qrels) for name, file in files.items()}
    for name, file in files.items():
        measures.check_queries(str(file), runs[name], qrels)
    values = measures.of_systems(runs, qrels)
    if keep is not None:
        keep("queries.jsonl", by_query(qrels, values))
    return measures.means(values, compare and COMPARED)
