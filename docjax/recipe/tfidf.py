"""TF-IDF of documents over the tokens of the segment encoder."""

from collections.abc import Iterable

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int

from docjax.types import Units

LEAST = 2  # documents that a word must occur in, if they are not few
BESIDE = 1.5  # power of the idf beside a transformer, which knows frequent words


def tfidf(
    documents: Iterable[Units],
    vocabulary: int,
    idf: Float[np.ndarray, " w"] | None = None,
    power: float = BESIDE,
    least: int = LEAST,
    without: Int[np.ndarray, " s"] | None = None,
) -> tuple[scipy.sparse.csr_matrix, Float[np.ndarray, " w"]]:
    """TF-IDF of documents, rows of length 1, and the words' idf^power.

    idf: that of other documents; None: of these, zero for words in fewer than `least`
      documents and for the tokens `without`.
    """
    counts = _counts(documents, vocabulary)
    if idf is None:
        known = np.bincount(counts.indices, minlength=vocabulary)
        idf = (np.log((1 + counts.shape[0]) / (1 + known)) + 1) ** power
        idf[known < least] = 0
        idf[[] if without is None else without] = 0
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(1)).ravel())
    counts.data /= np.repeat(np.maximum(lengths, 1e-12), np.diff(counts.indptr))
    return counts, idf


def word_vectors(
    documents: Iterable[Units], table: Float[np.ndarray, "w k"]
) -> Float[np.ndarray, "b k"]:
    """The sums of the vectors of the documents' words; a word that occurs c times in a
    document counts 1 + ln c times."""
    counts = _counts(documents, len(table))
    counts.data = 1 + np.log(counts.data)
    return counts @ table


def _counts(documents: Iterable[Units], vocabulary: int) -> scipy.sparse.csr_matrix:
    """How often each document (row) has each token (column)."""
    kinds, sizes, numbers = [], [], []
    for units in documents:
        found, times = np.unique(units.tokens, return_counts=True)
        kinds.append(found)
        numbers.append(times)
        sizes.append(len(found))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    values = np.concatenate(numbers).astype(np.float64) if numbers else np.zeros(0)
    columns = np.concatenate(kinds) if kinds else np.zeros(0, int)
    shape = len(sizes), vocabulary
    return scipy.sparse.csr_matrix((values, columns, starts), shape)
