"""SimSiam: against NumPy, and where the gradient stops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.encoders.pooling import Predictor
from docjax.errors import UserError
from docjax.objectives.simsiam import simsiam
from docjax.types import Targets

VECTORS = jnp.asarray(np.random.default_rng(0).normal(size=(4, 5, 3)), jnp.float32)
NONE = Targets(jnp.full(5, -1))


def cosine(a, b):
    return (a * b).sum(-1) / jnp.linalg.norm(a, axis=-1) / jnp.linalg.norm(b, axis=-1)


def test_the_loss_is_the_mean_cosine_of_predictions_and_vectors():
    left, right, left_said, right_said = VECTORS
    both = cosine(left_said, right) + cosine(right_said, left)
    np.testing.assert_allclose(simsiam(VECTORS, NONE)[0], -both.mean() / 2, rtol=1e-6)
    literal, _ = simsiam(VECTORS, NONE, literal=True)
    both = cosine(left, right_said) + cosine(right, left_said)
    np.testing.assert_allclose(literal, -both.mean() / 2, rtol=1e-6)


def test_the_gradient_stops_at_the_vectors_and_in_the_literal_form_at_predictions():
    loss = lambda vectors, literal: simsiam(vectors, NONE, literal=literal)[0]
    slope = jax.jit(jax.grad(loss), static_argnums=1)
    gradient = slope(VECTORS, False)
    assert not gradient[:2].any() and gradient[2:].any()
    gradient = slope(VECTORS, True)
    assert gradient[:2].any() and not gradient[2:].any()


def test_the_predictor_normalises_each_view_by_itself():
    predictor = Predictor(hidden=4)
    views = VECTORS[:2]
    params = jax.jit(predictor.init)(jax.random.key(0), views)
    apply = jax.jit(predictor.apply)
    out = apply(params, views)
    np.testing.assert_array_equal(out[:2], views)
    other = jnp.stack([views[0], 3 * views[1] + 1])
    np.testing.assert_array_equal(apply(params, other)[2], out[2])
    p = params["params"]
    inner = views[0] @ p["inner"]["kernel"]
    inner = (inner - inner.mean(0)) / np.sqrt(inner.var(0) + 1e-5)
    expected = np.maximum(inner, 0) @ p["outer"]["kernel"]
    np.testing.assert_allclose(out[2], expected, rtol=1e-4, atol=1e-5)


def test_spread_is_0_for_collapsed_vectors():
    same = jnp.ones((4, 5, 3))
    assert simsiam(same, NONE)[1]["spread"] == 0
    assert 0.5 < simsiam(VECTORS, NONE)[1]["spread"] < 1.5


def test_without_predictions_the_mend_is_named():
    with pytest.raises(UserError, match="not 2 arrays: set encoder.head to"):
        simsiam(VECTORS[:2], NONE)
