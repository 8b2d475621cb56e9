"""BigBird's block-sparse attention (Zaheer et al. 2020, section 2), linear in the length.

Tokens lie in blocks. The first and the last block of a row see all tokens. A token of
another block sees its block and both neighbours, the first and the last block, and some
random blocks. All of it depends on the row's own length, never on padding: the last
block is that of the row's last token, and short rows attend to all of their tokens.

transformers 5 evaluates with the first block in place of every random block, so that
the first block counts several times, and so does this module, in training too: what is
trained is what is read. Block-sparse attention drops no weights.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from docjax.encoders.blocks import NEVER, einsum
from docjax.kernels import by_platform, row_major, unchanged


class Pattern(NamedTuple):
    """Which blocks see each other."""

    block: int  # tokens of a block
    random: int  # random blocks that a block sees, all the first one

    @property
    def dense(self) -> int:
        """The most tokens of a row that attends to all of its tokens."""
        return (5 + 2 * self.random) * self.block


def block_sparse(
    q: Float[Array, "n s h k"],
    k: Float[Array, "n t h k"],
    v: Float[Array, "n t h k"],
    lengths: Int[Array, " n"],
    *,
    pattern: Pattern,
    dense: Callable,
) -> Float[Array, "n s h k"]:
    """The values that each token sees, weighted by softmax(q k / sqrt(k)).

    A single query is that of the first token, which sees all tokens. `dense` is the
    attention of rows of at most `pattern.dense` tokens.
    """
    if k.shape[1] <= pattern.dense or q.shape[1] < k.shape[1]:
        return dense(q, k, v, lengths)
    short = (lengths > 0) & (lengths <= pattern.dense)

    def with_short_rows(out: Array) -> Array:
        first = [x[:, : pattern.dense] for x in (q, k, v)]
        rows = dense(*first, jnp.minimum(lengths, pattern.dense))
        rows = jnp.where(short[:, None, None, None], rows, out[:, : pattern.dense])
        return out.at[:, : pattern.dense].set(rows)

    out = _long_rows(q, k, v, lengths, pattern)
    return jax.lax.cond(short.any(), with_short_rows, unchanged, out)


def _long_rows(q, k, v, lengths, pattern: Pattern):
    """Block-sparse attention of every row, one row and head at a time on a CPU."""
    n, t, h, width = q.shape
    inputs = (*map(_flat, (q * width**-0.5, k, v), [pattern.block] * 3),)
    inputs = *inputs, jnp.repeat(jnp.maximum(lengths, 1), h)
    # The backward pass computes the weights again.
    one = jax.checkpoint(functools.partial(_row, pattern))
    out = by_platform(
        *inputs,
        cpu=lambda *inputs: jax.lax.map(lambda row: one(*row), inputs),
        default=jax.vmap(one),
    )
    return out.reshape(n, h, -1, width)[:, :, :t].transpose(0, 2, 1, 3)


def _flat(x: Float[Array, "n t h k"], block: int) -> Float[Array, "_ _ k"]:
    """A row for each segment and head, padded to whole blocks."""
    n, t, h, width = x.shape
    x = jnp.pad(x, ((0, 0), (0, -t % block), (0, 0), (0, 0)))
    return row_major(x.transpose(0, 2, 1, 3)).reshape(n * h, -1, width)


# Inside: queries, keys and values [t k] of one row and head, and its length.


def _row(pattern: Pattern, q, k, v, length):
    size, t = pattern.block, len(q)
    last = (length - 1) // size  # the number of the last block
    bias = _bias(pattern, t, length, last)
    seen = functools.partial(_seen, size=size, last=last)
    blocks = q.reshape(-1, size, q.shape[-1])
    middle = _weighted(blocks, seen(k), seen(v), bias[:, None]).reshape(q.shape)
    ends = jnp.concatenate([q[:size], _block(q, last, size)])
    real = jnp.where(jnp.arange(t) < length, 0.0, NEVER)
    ends = _weighted(ends[None], k[None], v[None], real)[0]
    out = jax.lax.dynamic_update_slice_in_dim(middle, ends[:size], 0, 0)
    return jax.lax.dynamic_update_slice_in_dim(out, ends[size:], last * size, 0)


def _seen(x, size: int, last):
    """The rows of `x` that each block sees: [blocks tokens k]."""
    blocks = x.reshape(-1, size, x.shape[-1])
    none = jnp.zeros_like(blocks[:1])
    shared = jnp.concatenate([blocks[0], _block(x, last, size)])
    parts = [
        jnp.broadcast_to(shared, (len(blocks), *shared.shape)),
        jnp.concatenate([none, blocks[:-1]]),
        blocks,
        jnp.concatenate([blocks[1:], none]),
    ]
    return jnp.concatenate(parts, axis=1)


def _bias(pattern: Pattern, t: int, length, last):
    """What is added to the scores of each block: [blocks tokens], as `_seen` has them.

    The first and the last block count once, not as neighbours again.
    """
    size, count = pattern.block, t // pattern.block
    first = math.log(1 + pattern.random)
    real = last * size + jnp.arange(size) < length
    shared = jnp.concatenate([jnp.full(size, first), jnp.where(real, 0.0, NEVER)])
    near = jnp.arange(count)[:, None] + jnp.arange(-1, 2)
    inside = (near > 0) & (near < last)
    near = jnp.repeat(jnp.where(inside, 0.0, NEVER), size, axis=1)
    shared = jnp.broadcast_to(shared, (count, 2 * size))
    return jnp.concatenate([shared, near], axis=1)


def _block(x, number, size: int):
    return jax.lax.dynamic_slice_in_dim(x, number * size, size)


def _weighted(q, k, v, bias):
    """softmax(q k + bias) v of each block."""
    scores = einsum("bsk,btk->bst", q, k) + bias
    top = jax.lax.stop_gradient(scores.max(-1, keepdims=True))
    weights = jnp.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    out = einsum("bst,btk->bsk", weights.astype(v.dtype), v) / total
    return out.astype(v.dtype)
