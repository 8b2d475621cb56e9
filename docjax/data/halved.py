"""Documents of one unit that training reads as two, so that they have two views.

A text that the encoder reads at once is one unit, which has no halves to compare.
"""

import dataclasses
import functools
from pathlib import Path

import numpy as np
from jaxtyping import Int

from docjax.data.corpus import Corpus
from docjax.data.splits import spread
from docjax.types import Units

MOST = 5_000  # documents whose halves an encoder reads beside the whole texts


@dataclasses.dataclass(frozen=True, eq=False)
class Halved:
    """Some documents of one unit as two units each, cut in the middle.

    `folder`, `vectors`, `counts` and `lengths` are as of a `Corpus`, of the halves.
    """

    corpus: Corpus
    rows: Int[np.ndarray, " h"]  # of the documents, ascending
    vectors: tuple[np.ndarray, ...] = ()

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        documents: Int[np.ndarray, " b"],
        tokens: int,
        most: int | None = None,
    ) -> "Halved":
        """Those of `documents` that are one unit of at least `tokens` tokens.

        most: takes an even sample of that number; None: all.
        """
        single = np.sort(documents[corpus.counts[documents] == 1])
        long = single[corpus.sizes(single) >= tokens]
        return cls(corpus, spread(long, most or len(long)))

    @property
    def folder(self) -> Path:
        return self.corpus.folder

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Units:
        units = self.corpus[int(self.rows[index])]
        end = len(units.tokens)
        vectors = [np.asarray(part[2 * index : 2 * index + 2]) for part in self.vectors]
        return dataclasses.replace(
            units,
            offsets=np.array([0, end // 2, end]),
            sections=units.sections.repeat(2),
            documents=units.documents.repeat(2),
            vectors=np.concatenate(vectors, axis=-1) if vectors else None,
        )

    @property
    def counts(self) -> Int[np.ndarray, " h"]:
        return np.full(len(self), 2)

    @property
    def lengths(self) -> Int[np.ndarray, " h2"]:
        sizes = self.corpus.sizes(self.rows)
        return np.stack([sizes // 2, sizes - sizes // 2], axis=1).ravel()

    def with_vectors(self, *vectors: np.ndarray) -> "Halved":
        return dataclasses.replace(self, vectors=vectors)


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingCorpus:
    """A corpus as training reads it: the documents of `halved` are two units each.

    No half has more than the `lengths` of the whole units.
    """

    corpus: Corpus
    halved: Halved

    @functools.cached_property
    def counts(self) -> Int[np.ndarray, " c"]:
        counts = self.corpus.counts.copy()
        counts[self.halved.rows] = 2
        return counts

    def __getitem__(self, row: int) -> Units:
        rows = self.halved.rows
        place = int(np.searchsorted(rows, row))
        is_halved = place < len(rows) and rows[place] == row
        return self.halved[place] if is_halved else self.corpus[row]

    @property
    def ids(self) -> list[str]:
        return self.corpus.ids

    @property
    def lengths(self) -> Int[np.ndarray, " n"]:
        return self.corpus.lengths
