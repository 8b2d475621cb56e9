"""Kernels and tables decay, and nothing else."""

import jax
import jax.numpy as jnp

from docjax.encoders.perceptron import Perceptron
from docjax.encoders.weight_decay import decays


def test_the_biases_of_a_probe_do_not_decay():
    shapes = jax.eval_shape(
        Perceptron(3, 2, 4, 0.1).init, jax.random.key(0), jnp.zeros((1, 5))
    )
    found = decays(shapes["params"])
    assert found == {f"Dense_{i}": {"kernel": True, "bias": False} for i in range(3)}


def test_the_rotation_to_principal_components_stays_as_it_is():
    square = jnp.eye(2)
    found = decays({"document": {"components": square, "rotation": square}})
    assert found == {"document": {"components": False, "rotation": True}}
