"""Splash attention, JAX's kernel for TPUs: windows and long rows without their scores.

The kernel skips the blocks of keys that no query of a block sees. It has no dropout.
`attention.py` calls this module in a program for a TPU.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

BLOCKS = 512, 256, 128  # sizes of a block; the kernel has none below 128 tokens


def splash(
    q: Float[Array, "n t h k"],
    k: Float[Array, "n t h k"],
    v: Float[Array, "n t h k"],
    lengths: Int[Array, " n"],
    reach: int | None,
    shared: int,
    interpret: bool = False,
) -> Float[Array, "n t h k"]:
    """Values weighted by softmax(q k / sqrt(k)) over the keys that each query sees:
    those at most `reach` tokens away (None: all), and the first `shared`.

    `interpret` runs the kernel's steps one by one on any machine, for tests.
    """
    tokens = q.shape[1]
    padded = -(-tokens // BLOCKS[-1]) * BLOCKS[-1]
    kernel = _kernel(padded, q.shape[2], reach, shared, interpret)
    # Padding is a segment of its own, so that no query is without keys.
    real = (jnp.arange(padded) < lengths[:, None]).astype(jnp.int32)
    arrays = (_heads_first(x, padded) for x in (q * q.shape[-1] ** -0.5, k, v))
    out = jax.vmap(kernel)(*arrays, real)
    return out.swapaxes(1, 2)[:, :tokens]


@functools.lru_cache
def _kernel(
    tokens: int, heads: int, reach: int | None, shared: int, interpret: bool
) -> Callable:
    """The kernel of one row: q, k, v [h t k], and a segment number of each token."""
    # Imported for TPUs alone: this takes .3 s.
    from jax.experimental.pallas.ops.tpu import splash_attention as kernels

    shape = tokens, tokens
    if reach is None:
        seen = kernels.FullMask(shape)
    else:
        seen = kernels.LocalMask(shape, (reach, reach), 0)
        if shared:
            first = np.broadcast_to(np.arange(tokens) < shared, shape)
            seen = seen | kernels.NumpyMask(first)
    size = next(size for size in BLOCKS if tokens % size == 0)
    names = ("block_q", "block_kv", "block_kv_compute", "block_q_dkv", "block_kv_dkv")
    names += ("block_kv_dkv_compute", "block_q_dq", "block_kv_dq")
    with jax.ensure_compile_time_eval():  # its arrays outlive this trace
        made = kernels.make_splash_mha(
            kernels.MultiHeadMask([seen] * heads),
            head_shards=1,
            q_seq_shards=1,
            block_sizes=kernels.BlockSizes(**dict.fromkeys(names, size)),
            interpret=interpret,
        )
    return lambda q, k, v, real: made(q, k, v, kernels.SegmentIds(real, real))


def _heads_first(x: Float[Array, "n t h k"], tokens: int) -> Float[Array, "n h p k"]:
    x = jnp.pad(x, ((0, 0), (0, tokens - x.shape[1]), (0, 0), (0, 0)))
    return x.swapaxes(1, 2)
