"""Positions of documents on a t-SNE map."""

import numpy as np
import pytest
import scipy.sparse

from docjax.errors import UserError
from docjax.explain.tsne import check, positions, sample


def clusters(seed: int = 0) -> np.ndarray:
    """Two far groups of 20 vectors."""
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(40, 8))
    vectors[20:] += 30
    return vectors.astype(np.float32)


def nearest_are_of_the_same_group(xy: np.ndarray) -> bool:
    distances = np.linalg.norm(xy[:, None] - xy[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    return bool(np.all((distances.argmin(1) < 20) == (np.arange(40) < 20)))


def test_neighbours_stay_neighbours_and_the_seed_decides():
    xy = positions(clusters(), seed=1)
    assert xy.shape == (40, 2)
    assert nearest_are_of_the_same_group(xy)
    np.testing.assert_array_equal(xy, positions(clusters(), seed=1))


def test_a_sparse_matrix_is_mapped_too():
    dense = np.zeros((40, 300))
    dense[:20, :100] = np.random.default_rng(0).random((20, 100)) + 1
    dense[20:, 100:] = np.random.default_rng(1).random((20, 200)) + 1
    for matrix in (scipy.sparse.csr_matrix(dense), scipy.sparse.csr_array(dense)):
        assert nearest_are_of_the_same_group(positions(matrix))


def test_few_and_equal_documents_have_finite_positions():
    assert np.isfinite(positions(clusters()[:5])).all()
    assert not positions(np.ones((6, 4), np.float32)).any()
    few = scipy.sparse.csr_matrix(np.eye(6, 9))
    assert np.isfinite(positions(few)).all()


def test_vectors_of_one_number_have_a_map_too():
    column = clusters()[:, :1]  # TF-IDF vectors if the documents share two words
    words = scipy.sparse.csr_matrix(abs(column))
    for vectors in (column, words, scipy.sparse.hstack([words, words]).tocsr()):
        xy = positions(vectors)
        assert xy.shape == (40, 2) and np.isfinite(xy).all()
        assert nearest_are_of_the_same_group(xy)


def test_a_sample_is_drawn_without_repeats_and_in_order():
    np.testing.assert_array_equal(sample(7, 10, seed=0), np.arange(7))
    rows = sample(1000, 50, seed=0)
    assert len(set(rows)) == 50 and list(rows) == sorted(rows) and rows.max() < 1000
    np.testing.assert_array_equal(rows, sample(1000, 50, seed=0))
    assert list(rows) != list(sample(1000, 50, seed=1))


def test_a_user_is_told_what_is_wrong():
    x = clusters()
    nan = x.copy()
    nan[3, 3] = np.nan
    labels = ["a"] * 40
    sparse = scipy.sparse.csr_matrix(nan)
    for panels, some, ids, message in (
        ({"x": x}, labels[:3], None, "got 3 labels, 40 x"),
        ({"x": x, "y": x[:39]}, labels, None, "40 x, 39 y"),
        ({"x": x}, labels, ["1"], "1 ids"),
        ({"x": x[:4]}, labels[:4], None, "got 4 documents, it needs at least 5"),
        ({"x": x, "after": nan}, labels, None, "'after' .* not finite"),
        ({"TF-IDF": sparse}, labels, None, "'TF-IDF' .* not finite"),
        ({}, labels, None, "at least one panel"),
    ):
        with pytest.raises(UserError, match=message):
            check(panels, some, ids)
