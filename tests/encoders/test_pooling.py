"""Document encoders without parameters, and the classification head."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.encoders.pooling import Classifier, Mean


def given(documents: int = 3, segments: int = 4) -> tuple:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(documents, segments, 5)).astype(np.float32)
    lengths = generator.integers(1, 9, (documents, segments))
    lengths[1, 2:] = 0
    return jnp.asarray(vectors), jnp.asarray(lengths)


def test_the_mean_is_weighted_by_tokens():
    vectors, lengths = given()
    found = jax.jit(Mean().apply)({}, vectors, lengths)
    for i in range(len(vectors)):
        expected = np.average(vectors[i], axis=0, weights=lengths[i])
        np.testing.assert_allclose(found[i], expected, atol=1e-6)


def test_one_segment_gives_its_own_vector_exactly():
    vectors, _ = given()
    found = jax.jit(Mean().apply)({}, vectors[:, :1], jnp.full((3, 1), 7))
    np.testing.assert_array_equal(found, vectors[:, 0])
    query = Mean().apply({}, vectors[:, 0], method="query")
    np.testing.assert_array_equal(query, vectors[:, 0])


def test_a_normalized_mean_has_length_one():
    vectors, lengths = given()
    found = jax.jit(Mean(normalize=True).apply)({}, vectors, lengths)
    mean = np.asarray(jax.jit(Mean().apply)({}, vectors, lengths))
    expected = mean / np.linalg.norm(mean, axis=-1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("normalize", [False, True])
def test_padding_gets_exactly_no_gradient_and_no_segments_give_zero(normalize):
    vectors, lengths = given()
    lengths = lengths.at[2].set(0)
    loss = lambda v: (Mean(normalize).apply({}, v, lengths) * jnp.arange(5.0)).sum()
    gradient = jax.jit(jax.grad(loss))(vectors)
    assert np.isfinite(gradient).all()
    assert (gradient[lengths == 0] == 0).all()
    assert (np.abs(gradient[lengths > 0]).max(-1) > 0).all()
    assert (jax.jit(Mean(normalize).apply)({}, vectors, lengths)[2] == 0).all()


def test_logits_are_a_linear_map_with_dropout_where_a_key_is_given():
    vectors, _ = given()
    module = Classifier(classes=6, dropout=0.5)
    params = jax.jit(module.init)(jax.random.key(0), vectors)["params"]
    plain = jax.jit(module.apply)({"params": params}, vectors)
    expected = vectors @ params["logits"]["kernel"] + params["logits"]["bias"]
    np.testing.assert_allclose(plain, expected, atol=1e-6)
    keys = jax.random.split(jax.random.key(1), 2000)
    apply = lambda key: module.apply({"params": params}, vectors, key)
    drop = jax.jit(jax.vmap(apply))(keys)
    assert np.abs(drop[0] - plain).max() > 0.01
    spread = drop.std(0) / len(keys) ** 0.5
    assert (np.abs(drop.mean(0) - plain) < 5 * spread).all()  # unbiased
