"""One task on any model and a user's own files: what `docjax evaluate` does.

The tasks of a run, on the run's documents, are in `docjax.run.scoring`.
"""

import functools
from collections import Counter
from pathlib import Path
from typing import Any

from absl import logging

from docjax.data import splits
from docjax.data.pairs import read_pairs
from docjax.data.sources.jsonl import check_again, jsonl
from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.model.task_data import FileData, Source
from docjax.tasks.classification import Linear
from docjax.tasks.clustering import Clustering
from docjax.tasks.few_shot import FewShot
from docjax.tasks.matching import Matching
from docjax.tasks.retrieval import Retrieval
from docjax.tasks.runner import scores

LABELLED = {"clustering": Clustering, "classification": Linear, "few_shot": FewShot}
TASKS = (*LABELLED, "retrieval", "matching")
PARTS = ("train", "test")


def evaluate_model(
    model: DocumentModel,
    task: str,
    data: str,
    *,
    max_bad_fraction: float = 0.0,
    documents: str | None = None,
    **keywords: Any,
) -> dict[str, float]:
    """Metrics named `eval/<task>/<metric>`.

    Args:
      data: JSON lines with labels; a folder with a retrieval collection; or a table of
        pairs, whose documents are in the one file of JSON lines beside it.
      documents: that file, if there are several.
      keywords: of the task.

    Raises:
      UserError: for bad data, or data that the task cannot be done with.
    """
    source: Source = lambda: iter(())
    if task in LABELLED:
        check_again(data)
        source = _with_splits(functools.partial(jsonl, data, max_bad_fraction))
        built = LABELLED[task](**keywords)
    elif task == "retrieval":
        built = Retrieval(data, max_bad_fraction)
    else:
        read_pairs(Path(data))  # a mistake in it comes first
        built = Matching(data)
        path = documents or _beside(Path(data))
        check_again(path)
        source = functools.partial(jsonl, path, max_bad_fraction)
    given = FileData(model, source)
    built.check(given, "test")
    return scores({task: built}, given, "test")


def _with_splits(source: Source) -> Source:
    """The labelled documents; without any split, a fifth of each label for testing.

    Warnings say which documents are not used.
    """
    labelled = lambda: (each for each in source() if each.label is not None)
    read = Counter((each.label is not None, each.split) for each in source())
    counts = {split: n for (has_label, split), n in read.items() if has_label}
    others = read.total() - sum(counts.values())
    if others:
        logging.warning("%d documents have no label: they are not used", others)
    if set(counts) == {None}:
        logging.warning("no document has a split: a fifth of each label is the test")
        return functools.partial(splits.holdout, labelled)
    rest = {name: n for name, n in counts.items() if name not in PARTS}
    if rest:
        logging.warning("documents of these splits are not used: %s", rest)
    return labelled


def _beside(table: Path) -> str:
    files = sorted(str(file) for file in table.parent.glob("*.jsonl*"))
    if len(files) != 1:
        raise UserError(
            f"{table.parent}: {len(files)} files of JSON lines beside the pairs; name "
            "the one with the documents by --documents"
        )
    return files[0]
