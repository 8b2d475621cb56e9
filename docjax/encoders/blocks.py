"""Self-attention in blocks of queries, over all keys or over a window of keys.

The loop over the blocks keeps no [t t] scores, forward or backward: a window costs time
and memory linear in the length, and all keys cost linear memory. On a CPU the scores of
a block stay in the cache. `attention.py` calls this module, and all attention multiplies
with its `einsum`.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

BLOCK = 128  # queries of a block (benchmarks/long_attention.py)
NEVER = -1e30  # finite, so that a row without tokens has a finite softmax


class Pattern(NamedTuple):
    """Which keys a query sees: those at most `reach` away, and the first `shared`."""

    reach: int | None = None  # None: all keys
    shared: int = 0
    # (weights, keys, queries, columns): drops weights of these queries and keys
    dropout: Callable | None = None


def in_blocks(
    q: Float[Array, "n t h k"],
    k: Float[Array, "n t h k"],
    v: Float[Array, "n t h k"],
    lengths: Int[Array, " n"],
    keys: Key[Array, " n"] | None,
    pattern: Pattern,
) -> Float[Array, "n t h k"]:
    """Values weighted by softmax(q k / sqrt(k)) over the keys that each query sees."""
    blocks = _to_blocks(q * q.shape[-1] ** -0.5)
    k, v = k.swapaxes(1, 2), v.swapaxes(1, 2)
    return _from_blocks(_attend(blocks, k, v, lengths, keys, pattern), q.shape[1])


# Inside: queries [blocks n h BLOCK k]; keys and values [n h t k].


@functools.partial(jax.custom_vjp, nondiff_argnums=(5,))
def _attend(q, k, v, lengths, keys, pattern):
    return _forward(q, k, v, lengths, keys, pattern)[0]


def _forward(q, k, v, lengths, keys, pattern):
    def block(inputs):
        number, q = inputs
        seen = _Seen(number, pattern, k.shape[2])
        scores = _scores(q, seen.of(k), seen, lengths)
        top = scores.max(-1, keepdims=True)
        weights = jnp.exp(scores - top)
        total = weights.sum(-1, keepdims=True)
        used = _dropped(weights, seen, keys)
        out = einsum("nhsc,nhck->nhsk", used.astype(v.dtype), seen.of(v)) / total
        return out.astype(v.dtype), top + jnp.log(total)

    out, normalizer = jax.lax.map(block, (jnp.arange(len(q)), q))
    return out, (q, k, v, lengths, keys, out, normalizer)


def _backward(pattern, residuals, g):
    q, k, v, lengths, keys, out, normalizer = residuals
    mean = (g.astype(jnp.float32) * out.astype(jnp.float32)).sum(-1, keepdims=True)

    def block(sums, inputs):
        number, q, g, normalizer, mean = inputs
        seen = _Seen(number, pattern, k.shape[2])
        key = seen.of(k)
        weights = jnp.exp(_scores(q, key, seen, lengths) - normalizer)
        dweights = einsum("nhsk,nhck->nhsc", g, seen.of(v))
        dweights = _dropped(dweights, seen, keys)
        dscores = (weights * (dweights - mean)).astype(k.dtype)
        used = _dropped(weights, seen, keys).astype(g.dtype)
        # A small transpose here saves a large transpose inside the products.
        dk = einsum("nhks,nhsc->nhkc", q.swapaxes(2, 3), dscores)
        dv = einsum("nhks,nhsc->nhkc", g.swapaxes(2, 3), used)
        dq = einsum("nhsc,nhck->nhsk", dscores, key).astype(q.dtype)
        return (seen.add(sums[0], dk), seen.add(sums[1], dv)), dq

    zeros = jnp.zeros((*k.shape[:2], k.shape[3], k.shape[2]), jnp.float32)
    inputs = jnp.arange(len(q)), q, g, normalizer, mean
    sums, dq = jax.lax.scan(block, (zeros, zeros), inputs)
    dk, dv = (x.swapaxes(2, 3).astype(k.dtype) for x in sums)
    return dq, dk, dv, None, None


_attend.defvjp(_forward, _backward)


class _Seen:
    """The keys that a block of queries may see: `shared` keys, then a window."""

    def __init__(self, number: Array, pattern: Pattern, tokens: int) -> None:
        reach = tokens if pattern.reach is None else pattern.reach
        self.pattern, self.count = pattern, min(BLOCK + 2 * reach, tokens)
        first = number * BLOCK
        self.start = jnp.clip(first - reach, 0, tokens - self.count)
        self.queries = first + jnp.arange(BLOCK)
        window = self.start + jnp.arange(self.count)
        near = jnp.abs(self.queries[:, None] - window) <= reach
        near &= window >= pattern.shared
        shared = jnp.ones((BLOCK, pattern.shared), bool)
        self.keys = jnp.concatenate([jnp.arange(pattern.shared), window])
        self.near = jnp.concatenate([shared, near], axis=1)

    def of(self, x: Float[Array, "n h t k"]) -> Float[Array, "n h c k"]:
        """The keys' rows of `x`."""
        window = jax.lax.dynamic_slice_in_dim(x, self.start, self.count, axis=2)
        shared = self.pattern.shared
        return jnp.concatenate([x[:, :, :shared], window], 2) if shared else window

    def add(
        self, total: Float[Array, "n h k t"], part: Float[Array, "n h k c"]
    ) -> Float[Array, "n h k t"]:
        """The total with a part added at the keys' columns."""
        shared = self.pattern.shared
        if shared:
            total = total.at[..., :shared].add(part[..., :shared])
        old = jax.lax.dynamic_slice_in_dim(total, self.start, self.count, axis=3)
        new = old + part[..., shared:]
        return jax.lax.dynamic_update_slice_in_dim(total, new, self.start, axis=3)


def _scores(q, key, seen, lengths):
    visible = seen.near & (seen.keys < lengths[:, None, None])
    bias = jnp.where(visible, 0.0, NEVER)[:, None]
    return einsum("nhsk,nhck->nhsc", q, key) + bias


def _dropped(x, seen, keys):
    drop = seen.pattern.dropout
    return drop(x, keys, seen.queries, seen.keys) if drop else x


def _to_blocks(x: Float[Array, "n t h k"]) -> Float[Array, "w n h s k"]:
    n, t, h, k = x.shape
    count = -(-t // BLOCK)
    x = jnp.pad(x, ((0, 0), (0, count * BLOCK - t), (0, 0), (0, 0)))
    return x.reshape(n, count, BLOCK, h, k).transpose(1, 0, 3, 2, 4)


def _from_blocks(x: Float[Array, "w n h s k"], t: int) -> Float[Array, "n t h k"]:
    count, n, h, s, k = x.shape
    return x.transpose(1, 0, 3, 2, 4).reshape(n, count * s, h, k)[:, :t]


def einsum(equation: str, a: Array, b: Array) -> Array:
    """The sum of products, float32.

    bfloat16 arrays are multiplied as they are; no platform rounds float32 arrays.
    """
    is_exact = jnp.result_type(a, b) == jnp.float32
    precision = jax.lax.Precision.HIGHEST if is_exact else None
    return jnp.einsum(
        equation, a, b, precision=precision, preferred_element_type=jnp.float32
    )
