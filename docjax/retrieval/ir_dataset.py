"""A retrieval collection of ir-datasets, by its name."""

import dataclasses
import functools
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

from docjax.data.sources.ir_datasets import ir_datasets, load, names
from docjax.types import Qrels, Reader

PREFIX = "ir-datasets:"


@dataclasses.dataclass(frozen=True)
class IrDataset:
    """A dataset of ir-datasets with documents.

    Its splits are the datasets below it that have judgements ("beir/nfcorpus" has
    train, dev and test), or "test" alone if the dataset has judgements itself.
    Every method raises UserError as `docjax.data.sources.ir_datasets.load`.
    """

    name: str

    def reader(self) -> Reader:
        """A function of max_bad_fraction that yields the documents."""
        return functools.partial(ir_datasets, self.name)

    def queries(self) -> dict[str, str]:
        """The text of each query of any split by its id."""
        return {
            query.query_id: query.default_text()
            for dataset in self._datasets.values()
            for query in dataset.queries_iter()
        }

    def splits(self) -> tuple[str, ...]:
        return tuple(self._datasets)

    def judgements(self, split: str, queries: Container[str] | None = None) -> Qrels:
        """The judgements of all queries of a split that are in `queries`."""
        qrels: Qrels = {}
        for judged in self._datasets[split].qrels_iter():
            if queries is None or judged.query_id in queries:
                gains = qrels.setdefault(judged.query_id, {})
                gains[judged.doc_id] = judged.relevance
        return qrels

    def folds(self) -> Path | None:
        return None

    def files(self, splits: Iterable[str]) -> list[Path]:
        """None: the library checks what it has downloaded."""
        return []

    def __str__(self) -> str:
        return PREFIX + self.name

    @functools.cached_property
    def _datasets(self) -> dict[str, Any]:
        """The judged datasets by split."""
        own = load(self.name)
        if own.has_qrels():
            return {"test": own}
        start = f"{self.name}/"
        below = [
            n
            for n in names()
            if n.startswith(start) and n.count("/") == start.count("/")
        ]
        datasets = {name.removeprefix(start): load(name) for name in below}
        return {split: each for split, each in datasets.items() if each.has_qrels()}
