"""Head means of attention weights."""

import jax.numpy as jnp
import numpy as np

from docjax.explain.node_attention import node_attention


def test_the_last_layers_heads_are_averaged():
    weights = np.random.default_rng(0).random((2, 3, 5, 5)).astype(np.float32)
    expected = (weights[1, 0] + weights[1, 1] + weights[1, 2]) / 3
    np.testing.assert_allclose(node_attention(weights), expected, rtol=1e-6)


def test_jax_arrays_of_low_precision_become_float32():
    found = node_attention(jnp.full((1, 2, 4, 4), 0.25, jnp.bfloat16))
    assert isinstance(found, np.ndarray) and found.dtype == np.float32
    np.testing.assert_array_equal(found, np.full((4, 4), 0.25, np.float32))
