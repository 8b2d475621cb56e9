"""`docjax evaluate`: one task on any model and a user's own files.

`docjax.run.scoring` has the tasks of a run on the run's own documents.
"""

import dataclasses
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
from docjax.tasks.few_shot import FewShot, ShotsCurve
from docjax.tasks.knn import KNearest
from docjax.tasks.links import Links
from docjax.tasks.matching import Matching
from docjax.tasks.probe import Probe
from docjax.tasks.redundancy import Redundancy
from docjax.tasks.retrieval import Retrieval
from docjax.tasks.runner import scores
from docjax.tasks.sentence_similarity import SentenceSimilarity
from docjax.tasks.word_attention import WordAttention

LABELLED = {
    "clustering": Clustering,
    "classification": Linear,
    "probe": Probe,
    "k_nearest": KNearest,
    "few_shot": FewShot,
    "shots": ShotsCurve,
}
PAIRS = {"matching": Matching, "links": Links}
TEXTS = {
    "redundancy": Redundancy,
    "sentence_similarity": SentenceSimilarity,
    "word_attention": WordAttention,
}
TASKS = (*LABELLED, "retrieval", *PAIRS, *TEXTS)
PARTS = ("train", "test")


def evaluate_model(
    model: DocumentModel,
    task: str,
    data: str,
    *,
    max_bad_fraction: float = 0.0,
    documents: str | None = None,
    output: Path | None = None,
    **keywords: Any,
) -> dict[str, float]:
    """Metrics named `eval/<task>/<metric>`.

    Args:
      data: JSON lines, with labels for the tasks in LABELLED; a folder with a
        retrieval collection; or a table of pairs.
      documents: the JSON lines with the documents of the pairs; None takes the only
        file of JSON lines beside the table.
      output: the folder of what the task keeps, such as TREC runs; None: nothing.
      keywords: keyword arguments of the task.

    Raises:
      UserError: for bad data, and for data that does not fit the task.
    """
    source: Source = lambda: iter(())
    if task in LABELLED | TEXTS:
        check_again(data)
        source = functools.partial(jsonl, data, max_bad_fraction)
        source = _with_splits(source) if task in LABELLED else _as_test(source)
        scorer = (LABELLED | TEXTS)[task](**keywords)
    elif task == "retrieval":
        scorer = Retrieval(data, max_bad_fraction, **keywords)
    else:
        read_pairs(Path(data))  # reports a mistake in the table first
        scorer = PAIRS[task](data, **keywords)
        path = documents or _beside(Path(data))
        check_again(path)
        source = functools.partial(jsonl, path, max_bad_fraction)
    files = FileData(model, source, folder=output)
    scorer.check(files, "test")
    return scores({task: scorer}, files, "test")


def _as_test(source: Source) -> Source:
    """All documents as test documents: an analysis of texts reads every split."""
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
        logging.warning("%d documents have no label: they are not used", unlabelled)
    if set(counts) == {None}:
        logging.warning(splits.NO_SPLIT)
        return functools.partial(splits.holdout, labelled)
    unused = {name: n for name, n in counts.items() if name not in PARTS}
    if unused:
        logging.warning("documents of these splits are not used: %s", unused)
    return labelled


def _beside(table: Path) -> str:
    files = sorted(str(file) for file in table.parent.glob("*.jsonl*"))
    if len(files) != 1:
        raise UserError(
            f"{table.parent}: {len(files)} files of JSON lines beside the pairs, 1 is "
            "expected; name the file with --documents"
        )
    return files[0]
