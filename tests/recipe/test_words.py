"""Word vectors of a corpus against a dense TF-IDF and its decomposition."""

import numpy as np
import pytest

from docjax.recipe import words
from docjax.types import Units

TEXTS = [[1, 1, 1, 2], [1, 2, 3], [3, 3, 4], [2, 4, 4, 4, 4], [1, 3, 5]]
VOCABULARY = 7  # 5 is in one document, 0 and 6 in none


def units(tokens: list[int]) -> Units:
    ends = np.array([0, len(tokens)])
    nothing = np.zeros((0, 2), np.int32)
    return Units(np.array(tokens, np.int32), ends, np.zeros(1, np.int32), nothing)


def dense(power: float) -> tuple[np.ndarray, np.ndarray]:
    """TF-IDF and idf^power, as the docstring of `words.fitted` says."""
    counts = np.array([np.bincount(text, minlength=VOCABULARY) for text in TEXTS])
    documents = (counts > 0).sum(0)
    idf = (np.log((1 + len(TEXTS)) / (1 + documents)) + 1) ** power
    idf[documents < 2] = 0
    found = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
    return found / np.linalg.norm(found, axis=1, keepdims=True), idf


@pytest.mark.parametrize("power", [1.0, 1.5])
def test_tfidf_is_that_of_dense_matrices(power):
    found, idf = words.tfidf(map(units, TEXTS), VOCABULARY, power=power)
    expected, expected_idf = dense(power)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-12)
    np.testing.assert_allclose(idf, expected_idf)
    other, _ = words.tfidf([units([1, 5])], VOCABULARY, idf)
    np.testing.assert_allclose(other.toarray()[0, [1, 5]], [1, 0])


@pytest.mark.parametrize("alone, power", [(True, 1.0), (False, 1.5)])
def test_word_vectors_are_the_singular_vectors_times_idf(alone, power):
    corpus = dict(enumerate(map(units, TEXTS)))
    table = words.fitted(corpus, VOCABULARY, np.arange(len(TEXTS)), 3, alone)
    matrix, idf = dense(power)
    singular = np.linalg.svd(matrix)[2][:3].T * idf[:, None]
    signs = np.sign((table * singular).sum(0))
    np.testing.assert_allclose(table, singular * signs, atol=1e-5)
    assert not table[[0, 5, 6]].any()
