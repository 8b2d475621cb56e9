"""`docjax evaluate`: one task on any model and a user's own files.

`docjax.run.scoring` has the tasks of a run on the run's own documents.
"""

import dataclasses
import functools
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docjax.data import splits
from docjax.data.pairs import read_pairs
from docjax.data.sources.lines import check_again
from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.model.task_data import FileData, Source
from docjax.parts import named, outside
from docjax.retrieval.beir import read_documents
from docjax.tasks import catalogue
from docjax.tasks.runner import scores
from docjax.types import Task

logger = logging.getLogger(__name__)

PARTS = ("train", "test")


def evaluate_model(
    model: DocumentModel,
    task: str,
    data: str | None = None,
    *,
    allow: str | Sequence[str] = (),
    reading: Mapping[str, Any] | None = None,
    documents: str | None = None,
    output: Path | None = None,
    **keywords: Any,
) -> dict[str, float]:
    """Metrics named `eval/<task>/<metric>`.

    Args:
      task: a name of `docjax evaluate --task`, or the dotted name of a task class.
      data: what the task reads: documents, a folder with a retrieval collection, or a
        table of pairs.
      allow: prefixes of dotted names outside of docjax whose code is trusted.
      reading: keywords of the source `files`, which reads documents.
      documents: the file with the documents of the pairs; None takes the only
        file of JSON lines beside the table.
      output: the folder of what the task keeps, such as TREC runs; None: nothing.
      keywords: keyword arguments of the task.

    Raises:
      UserError: for bad data, and for data that does not fit the task.
    """
    reading = reading or {}
    most = reading.get("max_bad_fraction", 0.0)
    built = build(task, data, allow, most, **keywords)
    source = _source(built, data, documents, reading)
    files = FileData(model, source, folder=output)
    built.check(files, "test")
    return scores({name_of(built): built}, files, "test")


def build(
    task: str,
    data: str | None,
    allow: str | Sequence[str] = (),
    max_bad_fraction: float = 0.0,
    **keywords: Any,
) -> Task:
    """The task; `path` of a task of pairs or of a collection is `data`. Raises UserError
    for an unknown task, missing data, and keywords that do not fit."""
    cls = catalogue.find(task, allow)
    if data is None and cls.reads != "nothing":
        raise UserError(f"{task} has no data to read: give --data PATH")
    if data is not None and cls.reads == "nothing":
        raise UserError(f"{task} reads no data: leave --data out")
    if cls.reads in ("pairs", "collection"):
        keywords["path"] = data
    if cls.reads == "collection" and max_bad_fraction:
        keywords["max_bad_fraction"] = max_bad_fraction
    part = {"fn": catalogue.dotted(task, allow)} | keywords
    return named.build(part, ("docjax.", *outside.prefixes(allow)), name_of(cls))


def name_of(task: Task | type[Task]) -> str:
    """The name of a task, in the names of its metrics."""
    return task.command or getattr(task, "__name__", type(task).__name__)


def _source(
    task: Task, data: str | None, documents: str | None, reading: Mapping[str, Any]
) -> Source:
    """The documents that a task reads, beside a collection of its own."""
    if data is None or task.reads == "collection":
        return lambda: iter(())
    if task.reads == "pairs":
        read_pairs(Path(data))  # reports a mistake in the table first
        data = documents or _beside(Path(data))
    check_again(data)
    source = functools.partial(read_documents, data, **reading)
    if task.reads == "labels":
        return _with_splits(source)
    if task.reads != "texts":
        return source
    # An analysis of texts reads every split.
    return lambda: (dataclasses.replace(each, split="test") for each in source())


def _with_splits(source: Source) -> Source:
    """The labelled documents; if none has a split, a fifth of each label is the test.

    Warnings say which documents are not used.
    """
    labelled = lambda: (each for each in source() if each.label is not None)
    kinds = Counter((each.label is not None, each.split) for each in source())
    counts = {split: n for (has_label, split), n in kinds.items() if has_label}
    unlabelled = kinds.total() - sum(counts.values())
    if unlabelled:
        logger.warning("%d documents have no label: they are not used", unlabelled)
    if set(counts) == {None}:
        logger.warning(splits.NO_SPLIT)
        return functools.partial(splits.holdout, labelled)
    unused = {name: n for name, n in counts.items() if name not in PARTS}
    if unused:
        logger.warning("documents of these splits are not used: %s", unused)
    return labelled


def _beside(table: Path) -> str:
    files = sorted(str(file) for file in table.parent.glob("*.jsonl*"))
    if len(files) != 1:
        raise UserError(
            f"{table.parent}: {len(files)} files of JSON lines beside the pairs, 1 is "
            "expected; name the file with --documents"
        )
    return files[0]
