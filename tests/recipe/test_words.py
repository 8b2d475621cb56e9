"""Word vectors of a corpus against a dense TF-IDF and its decomposition."""

import numpy as np
import pytest

from docjax.data.word_tokenizer import train_words
from docjax.recipe import tfidf, words
from docjax.types import Units

TEXTS = [[1, 1, 1, 2], [1, 2, 3], [3, 3, 4], [2, 4, 4, 4, 4], [1, 3, 5]]
VOCABULARY = 7  # 5 is in one document, 0 and 6 in none


def units(tokens: list[int]) -> Units:
    ends = np.array([0, len(tokens)])
    nothing = np.zeros((0, 2), np.int32)
    return Units(np.array(tokens, np.int32), ends, np.zeros(1, np.int32), nothing)


def dense(power: float, least: int = 2, without=()) -> tuple[np.ndarray, np.ndarray]:
    """TF-IDF and idf^power, as the docstring of `words.fitted` says."""
    counts = np.array([np.bincount(text, minlength=VOCABULARY) for text in TEXTS])
    documents = (counts > 0).sum(0)
    idf = (np.log((1 + len(TEXTS)) / (1 + documents)) + 1) ** power
    idf[documents < least] = 0
    idf[list(without)] = 0
    found = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
    return found / np.linalg.norm(found, axis=1, keepdims=True), idf


@pytest.mark.parametrize("power", [1.0, 1.5])
def test_tfidf_is_that_of_dense_matrices(power):
    found, idf = tfidf.tfidf(map(units, TEXTS), VOCABULARY, power=power)
    expected, expected_idf = dense(power)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-12)
    np.testing.assert_allclose(idf, expected_idf)
    other, _ = tfidf.tfidf([units([1, 5])], VOCABULARY, idf)
    np.testing.assert_allclose(other.toarray()[0, [1, 5]], [1, 0])


@pytest.mark.parametrize("alone, power", [(True, 1.0), (False, 1.5)])
def test_word_vectors_are_the_singular_vectors_times_idf(alone, power):
    corpus = dict(enumerate(map(units, TEXTS)))
    table = words.fitted(corpus, VOCABULARY, np.arange(len(TEXTS)), 3, alone=alone)
    matrix, idf = dense(power)
    singular = np.linalg.svd(matrix)[2][:3].T * idf[:, None]
    signs = np.sign((table * singular).sum(0))
    np.testing.assert_allclose(table, singular * signs, atol=1e-5)
    assert not table[[0, 5, 6]].any()


def test_in_few_documents_a_word_of_one_counts_and_an_unspecific_word_does_not():
    corpus = dict(enumerate(map(units, TEXTS)))
    rows, without = np.arange(len(TEXTS)), np.array([1])
    table = words.fitted(corpus, VOCABULARY, rows, 256, unspecific=without)
    matrix, _ = dense(1.5, least=1, without=without)
    # All of the rank is there: the vectors have the cosines of TF-IDF itself.
    vectors = tfidf.word_vectors(corpus.values(), table)
    products = vectors @ vectors.T
    lengths = np.sqrt(np.diag(products))
    np.testing.assert_allclose(
        products / np.outer(lengths, lengths), matrix @ matrix.T, atol=1e-5
    )
    assert table[5].any() and not table[[0, 1, 6]].any() and not table[:, 5:].any()


def test_stop_words_marks_and_single_letters_are_unspecific():
    texts = ["The rocket, x 7 seven it's 水 Über", "the and"]
    tokenizer = train_words(texts, least_count=None, stop_words=False)
    names = tokenizer.backend.get_vocab()
    found = set(words.unspecific(tokenizer).tolist())
    said = {name.strip("\u2581") for name, number in names.items() if number in found}
    assert said == {"the", "and", ",", "it", "x", "7"} | ({"'s"} & said)
    assert {"rocket", "seven"} <= {name.strip("\u2581") for name in names} - said
