"""One task on any model and a user's own files: what `docjax evaluate` does.

The tasks of a run, on the run's documents, are in `docjax.run.scoring`.
"""

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging
from jaxtyping import Float

from docjax.data import splits
from docjax.data.pairs import read_pairs
from docjax.data.sources.jsonl import check_again, jsonl
from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.model.search import query_vectors
from docjax.tasks.classification import Linear
from docjax.tasks.clustering import Clustering
from docjax.tasks.few_shot import FewShot
from docjax.tasks.matching import Matching
from docjax.tasks.retrieval import Retrieval
from docjax.tasks.runner import scores
from docjax.types import Document, Embeddings

LABELLED = {"clustering": Clustering, "classification": Linear, "few_shot": FewShot}
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


@dataclasses.dataclass(frozen=True, eq=False)
class FileData:
    """Documents that a model encodes, as tasks read them; a part is a split.

    A document is encoded once, however many tasks read it.
    """

    model: DocumentModel
    source: Source  # gives the documents anew at every call
    kept: dict[str, Float[np.ndarray, " d"]] = dataclasses.field(default_factory=dict)

    @property
    def similarity(self) -> str:
        return self.model.similarity_fn_name

    def documents(self, part: str) -> Iterator[Document]:
        return (document for document in self.source() if document.split == part)

    def labels(self, part: str) -> list[str]:
        return list(self.label_of.get(part, {}).values())

    def labelled(self, part: str) -> Embeddings:
        ids = list(self.label_of.get(part, {}))
        vectors = self.vectors(ids)
        return Embeddings(vectors, self.labels(part), self._predictions(vectors))

    @functools.cached_property
    def label_of(self) -> dict[str, dict[str, str]]:
        """The label of each labelled document, by part and id."""
        labels: dict[str, dict[str, str]] = {}
        for document in self.source():
            if document.label is not None:
                labels.setdefault(document.split, {})[document.id] = document.label
        return labels

    def missing(self, ids: Iterable[str]) -> list[str]:
        return sorted(set(ids).difference(document.id for document in self.source()))

    def vectors(self, ids: Sequence[str]) -> Float[np.ndarray, "c d"]:
        new = [name for name in dict.fromkeys(ids) if name not in self.kept]
        if new:
            self.kept.update(self.read(new))
        unknown = [name for name in new if name not in self.kept]
        if unknown:
            raise UserError(f"no document has the id {unknown[0]!r}")
        rows = [self.kept[name] for name in ids]
        return np.stack(rows) if rows else np.zeros((0, 0), np.float32)

    def read(self, ids: list[str]) -> Iterator[tuple[str, Float[np.ndarray, " d"]]]:
        """The vectors of the documents with these ids, each encoded now."""
        chosen = set(ids)
        return self.encode(each for each in self.source() if each.id in chosen)

    def queries(self, texts: Sequence[str]) -> Float[np.ndarray, "q d"]:
        return query_vectors(self.model, texts)

    def encode(
        self, documents: Iterable[Document]
    ) -> Iterator[tuple[str, Float[np.ndarray, " d"]]]:
        counts: dict[str, Any] = {}
        yield from self.model.encode_once(documents, counts)
        self.model.warn(counts)

    def _predictions(self, vectors: Float[np.ndarray, "c d"]) -> list[str] | None:
        if not self.model.encoder.classifies or not len(vectors):
            return None
        numbers = self.model.inference().predictions(self.model.params, vectors)
        return [self.model.labels[number] for number in numbers]


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
