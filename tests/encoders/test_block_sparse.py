"""Block-sparse attention against dense scores with a mask, and its promises."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.encoders.attention import attention
from docjax.encoders.block_sparse import Pattern, block_sparse

BLOCK, RANDOM, HEADS, WIDTH = 4, 2, 2, 8
PATTERN = Pattern(BLOCK, RANDOM)
LIMIT = PATTERN.dense  # 36 tokens
sparse = functools.partial(block_sparse, dense=attention)
compiled = jax.jit(functools.partial(sparse, pattern=PATTERN))
LENGTHS = (1, LIMIT - 1, LIMIT, LIMIT + 1, 40, 41, 63, 64)


def arrays(lengths, t=None, seed=0):
    generator = np.random.default_rng(seed)
    shape = 3, len(lengths), max(lengths) if t is None else t, HEADS, WIDTH
    return jnp.asarray(generator.normal(size=shape), jnp.float32)


def counts(length, pattern=PATTERN):
    """How often each token sees each token: [length length], the oracle's one table."""
    if length <= pattern.dense:
        return np.ones((length, length))
    count = -(-length // pattern.block)
    blocks = np.zeros((count, count))
    for block in range(1, count - 1):
        seen = {0, block - 1, block, block + 1, count - 1}
        blocks[block, list(seen)] = 1
        blocks[block, 0] += pattern.random
    blocks[[0, -1]] = 1
    return blocks.repeat(pattern.block, 0).repeat(pattern.block, 1)[:length, :length]


def dense(q, k, v, seen):
    """Attention of one row and head, [t k], with the counts of `seen`."""
    weights = seen * np.exp(q @ k.T / math.sqrt(WIDTH))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("length", LENGTHS)
def test_each_token_sees_the_blocks_of_its_pattern(length):
    q, k, v = arrays([length])
    got = np.asarray(compiled(q, k, v, jnp.array([length])))
    for head in range(HEADS):
        one = [np.asarray(x[0, :, head], np.float64) for x in (q, k, v)]
        expected = dense(*one, counts(length))
        np.testing.assert_allclose(got[0, :, head], expected, atol=2e-6)


def test_a_row_is_read_as_if_it_were_alone():
    lengths = (*LENGTHS, 0)
    q, k, v = arrays(lengths, t=70)
    got = compiled(q, k, v, jnp.array(lengths))
    assert np.isfinite(got).all()
    for row, length in enumerate(LENGTHS):
        alone = [x[row : row + 1, :length] for x in (q, k, v)]
        expected = compiled(*alone, jnp.array([length]))
        np.testing.assert_allclose(got[row, :length], expected[0], atol=2e-6)


@pytest.mark.parametrize("length", [20, 45, 60])
def test_no_gradient_comes_from_padding(length):
    q, k, v = arrays([length, 64])
    weights = arrays([length, 64], seed=1)[0] * (jnp.arange(64) < length)[:, None, None]

    def value(q, k, v):
        out = sparse(q, k, v, jnp.array([length, 64]), pattern=PATTERN)
        return (out * weights)[0].sum()

    for gradient in jax.jit(jax.grad(value, (0, 1, 2)))(q, k, v):
        assert np.abs(gradient[0, :length]).max() > 0
        assert (np.asarray(gradient[0, length:]) == 0).all()
        assert (np.asarray(gradient[1]) == 0).all()


@pytest.mark.parametrize("length", [20, 61])
def test_gradients_are_those_of_the_dense_form(length):
    q, k, v = arrays([length])
    weights = arrays([length], seed=1)[0]
    seen = jnp.asarray(counts(length))

    def plain(q, k, v):
        scores = jnp.einsum("nshk,nthk->nhst", q, k) / math.sqrt(WIDTH)
        chances = jax.nn.softmax(scores + jnp.log(seen), axis=-1)
        return (jnp.einsum("nhst,nthk->nshk", chances, v) * weights).sum()

    def ours(q, k, v):
        out = sparse(q, k, v, jnp.array([length]), pattern=PATTERN)
        return (out * weights).sum()

    got, expected = (jax.jit(jax.grad(f, (0, 1, 2)))(q, k, v) for f in (ours, plain))
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_no_scores_of_all_pairs_are_computed():
    pattern, t = Pattern(64, 3), 4096
    shape = jax.ShapeDtypeStruct((1, t, 1, 8), jnp.float32)
    lengths = jax.ShapeDtypeStruct((1,), jnp.int32)

    def value(q, k, v, lengths):
        return sparse(q, k, v, lengths, pattern=pattern).sum()

    gradient = jax.jit(jax.grad(value, (0, 1, 2)))
    program = gradient.lower(shape, shape, shape, lengths).compile()
    assert program.memory_analysis().temp_size_in_bytes < t * t * 4
    sizes = [
        v.aval.size for v in _variables(jax.make_jaxpr(value)(*[shape] * 3, lengths))
    ]
    assert max(sizes) == t * 320  # five blocks of 64 tokens


def _variables(jaxpr):
    for equation in jaxpr.eqns:
        yield from equation.outvars
        for value in jax.tree.leaves(tuple(equation.params.values())):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from _variables(inner)
