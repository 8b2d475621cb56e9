"""Smaller vectors: how far they are from the vectors, and what must be exact."""

import jax.numpy as jnp
import numpy as np
import pytest

from docjax.retrieval.codes import Codes, coded


def decoded(vectors, kind):
    codes = coded(vectors, kind)
    return np.asarray(Codes(*map(jnp.asarray, codes)).decoded())


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(20, 3, 16)).astype("f")


def test_int8_is_within_half_a_step(vectors):
    step = np.abs(vectors).max(-1, keepdims=True) / 127
    assert (np.abs(decoded(vectors, "int8") - vectors) <= 0.501 * step).all()


def test_binary_keeps_signs_and_the_mean_size(vectors):
    found = decoded(vectors, "binary")
    assert (np.sign(found) == np.where(vectors > 0, 1, -1)).all()
    np.testing.assert_allclose(np.abs(found).mean(-1), np.abs(vectors).mean(-1), 1e-5)
    assert coded(vectors, "binary").codes.shape == (20, 3, 2)


@pytest.mark.parametrize("kind", ["int8", "binary"])
def test_zero_vectors_stay_zero(kind):
    assert (decoded(np.zeros((1, 1, 8), np.float32), kind) == 0).all()
