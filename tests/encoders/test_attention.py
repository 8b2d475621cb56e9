"""Attention: its values, whole, in blocks and in windows, and a platform's kernel."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.encoders import attention as module
from docjax.encoders import blocks, dropout
from docjax.encoders.attention import attention

LONG, BLOCK = 16, 4
RATE = 0.25


def plain(q, k, v, lengths, window=None, shared=0, keys=None, site=0):
    """The definition, written down."""
    queries, tokens = q.shape[1], k.shape[1]
    scores = jnp.einsum("nshk,nthk->nhst", q, k) / q.shape[-1] ** 0.5
    seen = jnp.arange(tokens) < lengths[:, None, None]
    if window is not None:
        distance = jnp.abs(jnp.arange(queries)[:, None] - jnp.arange(tokens))
        seen &= (distance <= window // 2) | (jnp.arange(tokens) < shared)
    scores = jnp.where(seen[:, None], scores, -1e30)
    weights = jax.nn.softmax(scores, -1)
    if keys is not None:
        mask = dropout.kept(keys, site, weights.shape[1:], RATE)
        weights = jnp.where(mask, weights / (1 - RATE), 0)
    return jnp.einsum("nhst,nthk->nshk", weights, v)


def arrays(tokens, queries=None, rows=2):
    generator = np.random.default_rng(0)
    draw = lambda t: jnp.asarray(generator.normal(size=(rows, t, 2, 4)), jnp.float32)
    return draw(queries or tokens), draw(tokens), draw(tokens)


def values_and_gradients(function, q, k, v, lengths):
    """Of the queries that are real, as padding may have any value."""
    real = jnp.arange(q.shape[1]) < lengths[:, None]
    weigh = np.random.default_rng(1).normal(size=(len(q), 64, *q.shape[2:]))
    weigh = weigh[:, : q.shape[1]] * real[..., None, None]

    def total(*qkv):
        values = function(*qkv, lengths)
        return (values * weigh).sum(), values

    gradient, values = jax.jit(jax.grad(total, (0, 1, 2), has_aux=True))(q, k, v)
    return jnp.where(real[..., None, None], values, 0), *gradient


def unwritten(q, k, v, query_seq_lengths, key_value_seq_lengths, implementation):
    """A kernel that does what cuDNN may do: NaN after the lengths, in values and
    gradients."""
    assert implementation == "cudnn"

    def nan_in_padding(x, lengths):
        real = jnp.arange(x.shape[1]) < lengths[:, None]
        return jnp.where(real[..., None, None], x, jnp.nan)

    @jax.custom_vjp
    def same(x, lengths):
        return x

    same.defvjp(
        lambda x, lengths: (x, lengths),
        lambda lengths, g: (nan_in_padding(g, lengths), None),
    )
    q, k, v = (
        same(x, lengths)
        for x, lengths in (
            (q, query_seq_lengths),
            (k, key_value_seq_lengths),
            (v, key_value_seq_lengths),
        )
    )
    return nan_in_padding(plain(q, k, v, key_value_seq_lengths), query_seq_lengths)


def test_padding_that_cudnn_does_not_write_reaches_nothing(monkeypatch):
    q, k, v = arrays(8, rows=3)
    lengths = jnp.array([8, 3, 0])
    expected = values_and_gradients(plain, q, k, v, lengths)
    monkeypatch.setattr(jax.nn, "dot_product_attention", unwritten)
    ours = values_and_gradients(module._cudnn, q, k, v, lengths)
    for got, value in zip(ours, expected, strict=True):
        np.testing.assert_allclose(got, value, atol=2e-5)
    assert jnp.isfinite(module._cudnn(q, k, v, lengths)).all()


@pytest.fixture
def short_blocks(monkeypatch):
    monkeypatch.setattr(module, "LONG", LONG)
    monkeypatch.setattr(module, "WHOLE", 2 * LONG)
    monkeypatch.setattr(blocks, "BLOCK", BLOCK)


WINDOWS = [
    dict(window=window, shared=shared)
    for window, shared in ((2, 0), (2, 1), (6, 2), (10, 1), (60, 1))
]


@pytest.mark.parametrize("tokens", [LONG, LONG + 1, LONG + 3 * BLOCK // 2, 39])
@pytest.mark.parametrize("queries", [1, None])
def test_values_and_gradients_are_those_of_the_definition(
    tokens, queries, short_blocks
):
    given = *arrays(tokens, queries), jnp.array([tokens, 7])
    found = values_and_gradients(attention, *given)
    for got, expected in zip(found, values_and_gradients(plain, *given), strict=True):
        np.testing.assert_allclose(got, expected, atol=2e-5)


@pytest.mark.parametrize("tokens", [1, 4, 23])
@pytest.mark.parametrize("options", WINDOWS, ids=str)
def test_a_window_gives_the_values_and_gradients_of_the_definition(
    tokens, options, short_blocks
):
    given = *arrays(tokens, rows=3), jnp.array([tokens, min(tokens, 7), 1])
    found, expected = (
        values_and_gradients(functools.partial(function, **options), *given)
        for function in (attention, plain)
    )
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, atol=2e-5)


@pytest.mark.parametrize("queries", [None, 6])
def test_what_cudnn_is_asked_for_is_the_definition(queries, monkeypatch):
    """Lengths mean the same to JAX's own implementation of the call for cuDNN."""
    call = jax.nn.dot_product_attention

    def by_xla(*arrays, implementation, **lengths):
        assert implementation == "cudnn"
        return call(*arrays, **lengths, implementation="xla")

    monkeypatch.setattr(jax.nn, "dot_product_attention", by_xla)
    given = *arrays(16, queries, rows=3), jnp.array([16, 7, 1])
    found = values_and_gradients(module._cudnn, *given)
    for got, want in zip(found, values_and_gradients(plain, *given), strict=True):
        np.testing.assert_allclose(got, want, atol=2e-5)


@pytest.mark.parametrize("options", [{}, dict(window=6), dict(window=6, shared=1)])
def test_dropout_of_weights_is_the_same_in_blocks_and_with_more_padding(
    options, short_blocks
):
    keys = jax.random.split(jax.random.key(0), 2)
    given = *arrays(40), jnp.array([9, 14])
    drops = dict(keys=keys, site=3)
    expected = values_and_gradients(
        functools.partial(plain, **options, **drops), *given
    )
    for tokens in (14, 23):
        short = *(x[:, :tokens] for x in given[:3]), given[3]
        function = functools.partial(attention, rate=RATE, **options, **drops)
        found = values_and_gradients(function, *short)
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, want[:, :tokens], atol=2e-5)


@pytest.mark.parametrize("window", [None, 6])
def test_the_first_token_alone_sees_what_it_sees_among_the_others(window, short_blocks):
    q, k, v = arrays(23)
    together = attention(q, k, v, jnp.array([23, 2]), window=window)
    alone = attention(q[:, :1], k, v, jnp.array([23, 2]), window=window)
    np.testing.assert_allclose(alone, together[:, :1], atol=1e-6)


@pytest.mark.parametrize("options", [{}, dict(window=6, shared=1)], ids=str)
def test_padding_gets_no_gradient_and_a_row_without_tokens_is_finite(
    options, short_blocks
):
    q, k, v = arrays(40, rows=3)
    lengths = jnp.array([40, 9, 0])
    function = functools.partial(attention, **options)
    values, *gradients = values_and_gradients(function, q, k, v, lengths)
    assert all(jnp.isfinite(x).all() for x in (values, *gradients))
    for gradient in gradients:
        assert (gradient[1, 9:] == 0).all() and (gradient[2] == 0).all()
        assert (gradient[1, :9] != 0).any((1, 2)).all()


@pytest.mark.parametrize(
    "options", [{}, dict(window=64), dict(window=64, shared=1)], ids=str
)
def test_no_score_of_all_pairs_of_a_long_row_is_kept(options):
    tokens = 4096
    x = jax.ShapeDtypeStruct((1, tokens, 1, 8), jnp.float32)
    lengths = jax.ShapeDtypeStruct((1,), jnp.int32)
    total = lambda *inputs: attention(*inputs, **options).sum()
    for platform in ("cpu", "cuda", "tpu"):
        traced = jax.jit(jax.grad(total, (0, 1, 2))).trace(x, x, x, lengths)
        text = traced.lower(lowering_platforms=(platform,)).as_text()
        shapes = re.findall(r"tensor<([0-9x]+)x[a-z]", text)
        largest = max(np.prod([int(i) for i in s.split("x")]) for s in shapes)
        assert largest <= blocks.BLOCK * tokens


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
