"""The teacher of a distillation: vectors moved towards their neighbours."""

import numpy as np

from docjax.recipe.teacher import smoothed, teacher_vectors
from docjax.types import ObjectiveWithTeacher


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def oracle(vectors: np.ndarray, neighbours: int, smoothing: float) -> np.ndarray:
    rows = []
    for vector in (vectors := unit(vectors)):
        nearest = sorted(range(len(vectors)), key=lambda i: -vectors[i] @ vector)
        mean = unit(np.mean([vectors[i] for i in nearest[:neighbours]], axis=0))
        rows.append(unit((1 - smoothing) * vector + smoothing * mean))
    return np.array(rows)


def test_each_vector_moves_towards_its_nearest_documents():
    vectors = np.random.default_rng(0).normal(size=(1100, 6)).astype(np.float32)
    for neighbours, smoothing in ((10, 0.5), (3, 0.3), (2000, 1.0), (10, 0.0)):
        found = smoothed(vectors, neighbours, smoothing)
        expected = oracle(vectors, neighbours, smoothing)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_documents_that_no_step_reads_have_zeros(tmp_path):
    class Objective(ObjectiveWithTeacher):
        neighbours, smoothing = 2, 0.5

    vectors = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    rows, path = np.array([1, 2, 5, 7]), tmp_path / "teacher.npy"
    found = teacher_vectors(path, Objective, rows, 9, lambda: vectors, False)
    assert found.shape == (9, 3) and not np.delete(found, rows, axis=0).any()
    np.testing.assert_allclose(found[rows], oracle(vectors, 2, 0.5), atol=1e-6)
    again = teacher_vectors(path, Objective, rows, 9, None, True)
    np.testing.assert_array_equal(again, found)
