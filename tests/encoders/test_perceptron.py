"""The perceptron against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.encoders.perceptron import Perceptron

VECTORS = jnp.asarray(np.random.default_rng(0).normal(size=(5, 7)), jnp.float32)


@pytest.mark.parametrize("hidden_layers", [0, 1, 2])
def test_scores_are_those_of_numpy(hidden_layers):
    model = Perceptron(3, hidden_layers, width=4, dropout=0.5)
    params = jax.jit(model.init)(jax.random.key(0), VECTORS)["params"]
    assert len(params) == hidden_layers + 1
    expected = np.asarray(VECTORS)
    for number in range(hidden_layers + 1):
        layer = params[f"Dense_{number}"]
        expected = expected @ np.asarray(layer["kernel"]) + np.asarray(layer["bias"])
        expected = np.tanh(expected) if number < hidden_layers else expected
    found = jax.jit(model.apply)({"params": params}, VECTORS)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_dropout_leaves_numbers_out_and_scales_the_others():
    model = Perceptron(2, 0, width=4, dropout=0.5)
    params = {"Dense_0": {"kernel": np.eye(2), "bias": np.zeros(2)}}
    keys = {"dropout": jax.random.key(0)}
    ones = jnp.ones((200, 2))
    found = model.apply({"params": params}, ones, train=True, rngs=keys)
    assert set(np.unique(found)) == {0, 2}
    assert abs(float(found.mean()) - 1) < 0.2
