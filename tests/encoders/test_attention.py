"""Attention of rows on both sides of the length where it is computed in blocks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.encoders import attention as module
from docjax.encoders.attention import attention

LONG, BLOCK = 16, 4


def plain(q, k, v, lengths):
    """The definition, written down."""
    scores = jnp.einsum("nshk,nthk->nhst", q, k) / q.shape[-1] ** 0.5
    real = jnp.arange(k.shape[1]) < lengths[:, None]
    scores = jnp.where(real[:, None, None], scores, -jnp.inf)
    return jnp.einsum("nhst,nthk->nshk", jax.nn.softmax(scores, -1), v)


@pytest.mark.parametrize("tokens", [LONG, LONG + 1, LONG + 3 * BLOCK // 2])
@pytest.mark.parametrize("queries", [1, None])
def test_values_and_gradients_are_those_of_the_definition(tokens, queries, monkeypatch):
    monkeypatch.setattr(module, "LONG", LONG)
    monkeypatch.setattr(module, "BLOCK", BLOCK)
    generator = np.random.default_rng(0)
    draw = lambda t: jnp.asarray(generator.normal(size=(2, t, 2, 4)), jnp.float32)
    q, k, v = draw(queries or tokens), draw(tokens), draw(tokens)
    weigh, lengths = draw(queries or tokens), jnp.array([tokens, 7])

    def both(function):
        total = lambda *qkv: (function(*qkv, lengths) * weigh).sum()
        gradient = jax.jit(jax.grad(total, (0, 1, 2)))(q, k, v)
        return jax.jit(function)(q, k, v, lengths), *gradient

    for found, expected in zip(both(attention), both(plain), strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-5)
