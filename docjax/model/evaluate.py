"""One task on any model and a user's own data: what `docjax evaluate` does.

The tasks of a run, on its own documents, are in `evaluate.py`.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging

from docjax.data import splits
from docjax.data.pairs import Pair, read_pairs
from docjax.data.sources.jsonl import check_again, jsonl
from docjax.errors import UserError
from docjax.model.compare import unit
from docjax.model.document_model import DocumentModel
from docjax.model.encode_file import encode_once
from docjax.model.search import search
from docjax.retrieval import bm25, collection
from docjax.tasks import few_shot
from docjax.tasks.classification import linear
from docjax.tasks.clustering import clustering
from docjax.tasks.embeddings import check_classes, check_part
from docjax.tasks.matching import matching
from docjax.tasks.retrieval import ir_measures, retrieval
from docjax.types import Document, Embeddings

LABELLED: dict[str, Callable[..., dict[str, float]]] = {
    "clustering": clustering,
    "classification": linear,
    "few_shot": few_shot.few_shot,
}
TASKS = (*LABELLED, "retrieval", "matching")
PARTS = ("train", "test")
Source = Callable[[], Iterator[Document]]


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
      documents: that file, if there are more than one.
      keywords: of the task's function.

    Raises:
      UserError: for bad data, or data that the task cannot be done with.
    """
    if task in LABELLED:
        check_again(data)
        source = _with_splits(functools.partial(jsonl, data, max_bad_fraction))
        _check_labels(task, source, **keywords)
        found = LABELLED[task](**_labelled(model, source), **keywords)
    elif task == "retrieval":
        found = _retrieval(model, Path(data), max_bad_fraction)
    else:
        pairs = read_pairs(Path(data))
        path = documents or _beside(Path(data))
        check_again(path)
        found = _matching(model, pairs, lambda: jsonl(path, max_bad_fraction))
    return {f"eval/{task}/{name}": value for name, value in found.items()}


def _with_splits(source: Source) -> Source:
    """The labelled documents; without any split, a fifth of each label for testing.

    Says which are not used.
    """
    labelled = lambda: (one for one in source() if one.label is not None)
    read = Counter((one.label is not None, one.split) for one in source())
    found = {split: n for (has_label, split), n in read.items() if has_label}
    others = read.total() - sum(found.values())
    if others:
        logging.warning("%d documents have no label: they are not used", others)
    if set(found) == {None}:
        logging.warning("no document has a split: a fifth of each label is the test")
        return functools.partial(splits.holdout, labelled)
    rest = {name: n for name, n in found.items() if name not in PARTS}
    if rest:
        logging.warning("documents of these splits are not used: %s", rest)
    return labelled


def _check_labels(task: str, source: Source, **keywords: Any) -> None:
    """Raises UserError for labels that the task cannot be done with, before encoding."""
    labels: dict[str, list[str]] = {name: [] for name in PARTS}
    for document in source():
        labels.get(document.split, []).append(document.label)
    for name in PARTS:
        check_part(name, Embeddings(np.zeros((len(labels[name]), 1)), labels[name]))
    check_classes("train", labels["train"])
    if task == "few_shot":
        few_shot.rows_by_class(labels["train"], **keywords)


def _labelled(model: DocumentModel, source: Source) -> dict[str, Embeddings]:
    rows: dict[str, list[int]] = {name: [] for name in PARTS}
    labels: list[str] = []

    def chosen() -> Iterator[Document]:
        for document in source():
            if document.split in rows:
                rows[document.split].append(len(labels))
                labels.append(document.label)
                yield document

    vectors = np.array([vector for _, vector in _encoded(model, chosen())])
    return {
        name: Embeddings(vectors[some], [labels[row] for row in some])
        for name, some in rows.items()
    }


def _retrieval(
    model: DocumentModel, folder: Path, max_bad_fraction: float
) -> dict[str, float]:
    ir_measures()
    found = collection.read(folder)
    judged = {*found.test, *found.tuning}
    queries = {name: text for name, text in found.queries.items() if name in judged}
    _check_judged(found, max_bad_fraction)
    by_words = bm25.search(found.documents(max_bad_fraction), queries)
    counts: dict[str, Any] = {}
    documents = found.documents(max_bad_fraction)
    by_vectors = search(model, documents, queries, counts)
    model.warn(counts)
    return retrieval(by_vectors, by_words, found.test, found.tuning)


def _check_judged(found: collection.Collection, max_bad_fraction: float) -> None:
    """Raises UserError if no judged document is there; says how many are missing."""
    gains = [*found.test.values(), *found.tuning.values()]
    judged = set().union(*gains)
    missing = judged.difference(one.id for one in found.documents(max_bad_fraction))
    if missing:
        text = f"{len(missing)} of {len(judged)} judged documents are not in the corpus"
        if missing == judged:
            raise UserError(f"{found.corpus}: {text}, {min(missing)!r} is one")
        logging.warning("%s: nobody finds them", text)


def _matching(
    model: DocumentModel,
    pairs: dict[str, list[Pair]],
    source: Callable[[], Iterator[Document]],
) -> dict[str, float]:
    tuning = next((name for name in collection.TUNING if name in pairs), None)
    if tuning is None or "test" not in pairs:
        raise UserError(
            f'pairs of the splits "test" and {" or ".join(collection.TUNING)} are '
            f"needed; there are {', '.join(pairs) or 'none'}"
        )
    rest = {
        name: len(some) for name, some in pairs.items() if name not in (tuning, "test")
    }
    if rest:
        logging.warning("pairs of these splits are not used: %s", rest)
    parts = [pairs[tuning], pairs["test"]]
    needed = {name for part in parts for pair in part for name in pair[:2]}
    missing = sorted(needed - {document.id for document in source()})
    if missing:
        raise UserError(
            f"{len(missing)} of {len(needed)} documents of the pairs are not there, "
            f"{missing[0]!r} is the first: give the file that holds them (--documents)"
        )
    chosen = (document for document in source() if document.id in needed)
    vectors = dict(_encoded(model, chosen))
    ends = [
        [unit(np.stack([vectors[pair[end]] for pair in part])) for end in (0, 1)]
        for part in parts
    ]
    cosines = [(sources * targets).sum(1) for sources, targets in ends]
    similar = [np.array([pair.similar for pair in part]) for part in parts]
    return matching(*zip(cosines, similar, strict=True))


def _encoded(
    model: DocumentModel, documents: Iterable[Document]
) -> Iterator[tuple[str, np.ndarray]]:
    counts: dict[str, Any] = {}
    yield from encode_once(model, documents, counts)
    model.warn(counts)


def _beside(table: Path) -> str:
    found = sorted(str(file) for file in table.parent.glob("*.jsonl*"))
    if len(found) != 1:
        raise UserError(
            f"{table.parent}: {len(found)} files of JSON lines beside the pairs; name "
            "the one with the documents by --documents"
        )
    return found[0]
