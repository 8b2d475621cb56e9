"""Some documents of a corpus, whose vectors an encoder computes before training."""

import dataclasses
from pathlib import Path

import numpy as np
from jaxtyping import Int

from docjax.data.corpus import Corpus
from docjax.data.segments import spread
from docjax.types import Units


@dataclasses.dataclass(frozen=True, eq=False)
class Subset:
    """Some documents of a corpus, with what a `Corpus` says of its documents."""

    corpus: Corpus
    rows: Int[np.ndarray, " b"]  # of the documents, ascending

    @property
    def folder(self) -> Path:
        return self.corpus.folder

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Units:
        return self.corpus[int(self.rows[index])]

    @property
    def counts(self) -> Int[np.ndarray, " b"]:
        return self.corpus.counts[self.rows]

    @property
    def lengths(self) -> Int[np.ndarray, " n"]:
        after = np.cumsum(self.corpus.counts)[self.rows]
        return self.corpus.lengths[spread(after - self.counts, self.counts)]

    def with_vectors(self, *vectors: np.ndarray) -> Corpus:
        """The corpus, in which the units of these documents have `vectors`, parts laid
        side by side; those of other documents have none."""
        return self.corpus.with_vectors(*vectors, rows=self.rows)
