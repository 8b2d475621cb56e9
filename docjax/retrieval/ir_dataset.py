"""A retrieval collection of ir-datasets, by its name."""

import dataclasses
import functools
import re
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any

from docjax.data import once
from docjax.data.sources.ir_datasets import ir_datasets, load, names, rows_of
from docjax.data.splits import TUNING
from docjax.retrieval import folds as folds_lib
from docjax.types import Qrels, Reader

PREFIX = "ir-datasets:"
SPLITS = {name: name for name in ("test", *TUNING)} | {"training": "train"}
FOLD = re.compile(r"fold(\d+)")


@dataclasses.dataclass(frozen=True)
class IrDataset:
    """A dataset of ir-datasets with documents.

    Its splits are the datasets below it that SPLITS names, if they have judgements
    ("beir/nfcorpus" has train, dev and test), or "test" alone if the dataset has
    judgements itself. Its folds are the datasets below it called fold1, fold2 ...
    Every method raises UserError as `docjax.data.sources.ir_datasets.load`.
    """

    name: str

    def reader(self) -> Reader:
        return functools.partial(ir_datasets, self.name)

    def queries(self) -> dict[str, str]:
        """The text of each query of any split by its id."""
        return {
            query.query_id: query.default_text()
            for split, dataset in self._datasets.items()
            for query in rows_of(dataset.queries_iter, f"{self.name}, {split}")
        }

    def splits(self) -> tuple[str, ...]:
        return tuple(self._datasets)

    def judgements(self, split: str, queries: Container[str] | None = None) -> Qrels:
        """Leaves out judgements of unknown queries, and those after the first one of a
        query and a document; a warning counts them, since nobody can mend a dataset."""
        qrels: Qrels = {}
        unknown = again = 0
        read = self._datasets[split].qrels_iter
        for each in rows_of(read, f"{self.name}, {split}"):
            if queries is not None and each.query_id not in queries:
                unknown += 1
                continue
            gains = qrels.setdefault(each.query_id, {})
            again += each.doc_id in gains
            gains.setdefault(each.doc_id, each.relevance)
        if unknown or again:
            text = "%s, %s: %d judgements of unknown queries and %d repeated ones: left"
            once.warn(f"{text} out", str(self), split, unknown, again)
        return qrels

    def folds(self, queries: Iterable[str]) -> Sequence[Sequence[str]]:
        """The given folds, which hold all `queries`; none without datasets of folds."""
        numbers = [int(found[1]) for found in map(FOLD.fullmatch, self._below) if found]
        folds = []
        for name in (f"{self.name}/fold{number}" for number in sorted(numbers)):
            rows = rows_of(load(name).queries_iter, name)
            folds.append([query.query_id for query in rows])
        if folds:
            folds_lib.check(folds, queries, str(self))
        return folds

    def mend(self, split: str) -> str:
        if not self._below:
            return f"name a dataset that has judgements {split}"
        below = ", ".join(self._below)
        return f"name {self}/NAME in its place, where NAME is one of {below}"

    def files(self, splits: Iterable[str]) -> list[Path]:
        """No files: the library checks what it has downloaded."""
        return []

    def __str__(self) -> str:
        return PREFIX + self.name

    @functools.cached_property
    def _datasets(self) -> dict[str, Any]:
        """The judged datasets by split."""
        own = load(self.name)
        if own.has_qrels():
            return {"test": own}
        named = (name for name in self._below if name in SPLITS)
        datasets = {SPLITS[name]: load(f"{self.name}/{name}") for name in named}
        return {split: each for split, each in datasets.items() if each.has_qrels()}

    @functools.cached_property
    def _below(self) -> list[str]:
        """The names of the datasets directly below this one."""
        start = f"{self.name}/"
        below = (name.removeprefix(start) for name in names() if name.startswith(start))
        return [name for name in below if "/" not in name]
