"""Attention: its values, on both sides of the length where it is computed in blocks,
and the kernel that a platform takes.
"""

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


def gradient_program(platform, queries, tokens, width, dtype="bfloat16", **options):
    """The lowered gradient of attention with 2 heads."""
    draw = lambda t: jax.ShapeDtypeStruct((3, t, 2, width), dtype)
    arrays = draw(queries), draw(tokens), draw(tokens)
    lengths = jax.ShapeDtypeStruct((3,), jnp.int32)

    def total(q, k, v, lengths):
        return attention(q, k, v, lengths, **options).astype(jnp.float32).sum()

    traced = jax.jit(jax.grad(total, (0, 1, 2))).trace(*arrays, lengths)
    return traced.lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize(
    "queries, tokens, width, accepts",
    [
        (8, 8, 64, True),
        (128, 128, 128, True),
        (1, 8, 64, False),  # the first token alone, in the last layer
        (7, 7, 64, False),  # an odd last width of a bucket
        (129, 129, 64, False),
        (8, 8, 12, False),
        (8, 8, 136, False),
    ],
)
def test_a_gpu_takes_cudnn_where_cudnn_has_a_gradient_and_our_own_elsewhere(
    cudnn, queries, tokens, width, accepts
):
    text = gradient_program("cuda", queries, tokens, width)
    assert ("__cudnn$fmhaSoftmaxBackward" in text) == accepts


@pytest.mark.parametrize(
    "platform, dtype, options",
    [
        ("cpu", "bfloat16", {}),
        ("tpu", "bfloat16", {}),
        ("cuda", "float32", {}),
        ("cuda", "bfloat16", dict(kernel="own")),
        (
            "cuda",
            "bfloat16",
            dict(keys=jax.random.split(jax.random.key(0), 3), rate=0.1),
        ),
    ],
)
def test_no_other_program_calls_cudnn(cudnn, platform, dtype, options):
    assert "cudnn" not in gradient_program(platform, 8, 8, 64, dtype, **options)


def test_a_machine_without_cudnn_lowers_our_own_attention_for_a_gpu():
    assert not module._has_cudnn()
    assert "cudnn" not in gradient_program("cuda", 8, 8, 64)
