"""Self-attention over the tokens of a segment, and the choice of its kernel.

Rows are padded at the end, and no token attends to padding. The segment encoders call
this module; `blocks.py` has the attention of long rows and of windows.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from docjax.encoders.blocks import NEVER, Pattern, einsum, in_blocks
from docjax.encoders.dropout import dropout_at, dropped, kept, scale
from docjax.encoders.splash import splash
from docjax.errors import UserError
from docjax.kernels import by_platform, materialize, row_major, traced_for, unchanged

KERNELS = ("auto", "own")
# Rows of more than LONG tokens are faster in blocks on a CPU. Rows of more than WHOLE
# tokens take blocks everywhere: the weights of all pairs would fill the memory.
LONG, WHOLE = 256, 1024


def attention(  # noqa: PLR0913 arrays, and what an encoder sets
    q: Float[Array, "n s h k"],
    k: Float[Array, "n t h k"],
    v: Float[Array, "n t h k"],
    lengths: Int[Array, " n"],
    *,
    window: int | None = None,
    shared: int = 0,
    keys: Key[Array, " n"] | None = None,
    site: int = 0,
    rate: float = 0.0,
    kernel: str = "auto",
) -> Float[Array, "n s h k"]:
    """The values of the first `lengths` tokens, weighted by softmax(q k / sqrt(k)).

    With a `window`, a token sees the tokens at most `window // 2` places away on either
    side, and the first `shared` tokens of its row. A single query of many keys is that
    of the first token. A row of length 0 gives a finite answer. `keys` turn on dropout
    of the weights at `rate`. Without dropout, "auto" uses cuDNN on an NVIDIA GPU where it
    accepts the arrays and there is no window. For windows and long rows of bfloat16 it
    uses Splash on TPUs, in a `shard_map` alone, because the compiler cannot divide it.

    Raises:
      UserError: for an unknown `kernel`.
    """
    if kernel not in KERNELS:
        raise UserError(f"attention {kernel!r} is not one of {', '.join(KERNELS)}")
    keys = keys if dropped(rate) else None
    reach = k.shape[1] if window is None else window // 2
    near, fast = reach + 1 < q.shape[1], keys is None and kernel == "auto"
    is_long = near or q.shape[1] > WHOLE
    if fast and is_long and q.dtype == jnp.bfloat16 and _on_tpu():
        return splash(q, k, v, lengths, reach if near else None, shared)
    if near:
        pattern = _pattern(keys, site, rate, reach, shared)
        return in_blocks(q, k, v, lengths, keys, pattern)
    k, v = k[:, : reach + 1], v[:, : reach + 1]  # all, or what the first token sees
    lengths = jnp.minimum(lengths, reach + 1)
    if fast and _cudnn_accepts(q, k) and _has_cudnn():
        return by_platform(q, k, v, lengths, cuda=_cudnn, default=_own)
    return _own(q, k, v, lengths, keys, site, rate)


def _on_tpu() -> bool:
    """Whether this traces a part of a `shard_map` over TPUs."""
    device = traced_for()
    return device is not None and device.platform == "tpu"


def _cudnn_accepts(q: Array, k: Array) -> bool:
    """Whether cuDNN computes this attention and its gradient.

    cuDNN's backward pass needs even numbers of queries and keys, so it rejects the
    single query of a last layer.
    """
    even = q.shape[1] % 2 == 0 and k.shape[1] % 2 == 0
    width = q.shape[-1]
    return q.dtype == jnp.bfloat16 and even and width % 8 == 0 and width <= 128


@functools.cache
def _has_cudnn() -> bool:
    """Whether JAX finds cuDNN; without cuDNN, JAX cannot even trace a call of it."""
    q = jax.ShapeDtypeStruct((1, 2, 1, 8), jnp.bfloat16)
    lengths = jax.ShapeDtypeStruct((1,), jnp.int32)
    try:
        jax.eval_shape(_cudnn, q, q, q, lengths)
    except RuntimeError:
        return False
    return True


def _cudnn(q: Array, k: Array, v: Array, lengths: Array) -> Array:
    """cuDNN's attention, with lengths: it expands a mask to a bias of all token pairs.

    cuDNN may leave what is after the lengths unwritten, so that old memory, even NaN,
    would reach the next layer. So all queries count as real, every row has a key, and
    the gradients of padded keys and values are set to zero.
    """
    queries = jnp.full(len(q), q.shape[1], jnp.int32)
    return jax.nn.dot_product_attention(
        q,
        _without_padding(k, lengths),
        _without_padding(v, lengths),
        query_seq_lengths=queries,
        key_value_seq_lengths=jnp.maximum(lengths, 1).astype(jnp.int32),
        implementation="cudnn",
    )


def _without_padding(x: Array, lengths: Array) -> Array:
    """Zeros after the first `lengths` tokens, in the gradient too."""
    real = jnp.arange(x.shape[1]) < lengths[:, None]
    return jnp.where(real[..., None, None], x, 0)


def _own(q, k, v, lengths, keys=None, site=0, rate=0.0):
    pattern = _pattern(keys, site, rate)
    blocks = functools.partial(in_blocks, keys=keys, pattern=pattern)
    whole = functools.partial(_whole, keys=keys, site=site, rate=rate)
    tokens = k.shape[1]
    if tokens <= LONG or q.shape[1] < tokens:
        return whole(q, k, v, lengths)
    if tokens > WHOLE:
        return blocks(q, k, v, lengths)
    return by_platform(q, k, v, lengths, cpu=blocks, default=whole)


def _pattern(keys, site, rate, reach=None, shared=0) -> Pattern:
    """What a query sees in blocks, and which weights are dropped."""
    if keys is None:
        return Pattern(reach, shared)
    return Pattern(reach, shared, functools.partial(dropout_at, site=site, rate=rate))


def _whole(q, k, v, lengths, keys, site, rate):
    mask = None
    if keys is not None:
        mask = kept(keys, site, (q.shape[2], q.shape[1], k.shape[1]), rate)
    q, k, v = (_heads_first(x) for x in (q * q.shape[-1] ** -0.5, k, v))
    padding = jnp.arange(k.shape[2]) >= lengths[:, None]
    bias = jnp.where(padding, NEVER, 0.0)[:, None, None]
    return _weighted(q, k, v, bias, mask, scale(rate)).transpose(0, 2, 1, 3)


@functools.partial(jax.custom_vjp, nondiff_argnums=(5,))
def _weighted(q, k, v, bias, kept, scale):
    """softmax(q k + bias) v, with heads before tokens."""
    weights, total = _weights(q, k, bias)
    if kept is not None:
        weights = jnp.where(kept, weights * scale, 0)
    # Divide the product, which is narrower than the weights.
    out = einsum("nhst,nhtk->nhsk", weights.astype(v.dtype), v) / total
    return out.astype(v.dtype)


def _forward(q, k, v, bias, kept, scale):
    out = _weighted(q, k, v, bias, kept, scale)
    return out, (q, k, v, bias, kept, out)


def _backward(scale, residuals, g):
    q, k, v, bias, kept, out = residuals
    g = row_major(g)
    # A GPU or a TPU computes the weights again. A CPU is faster if it keeps them.
    again = jax.lax.optimization_barrier
    q, k = by_platform((q, k), cpu=unchanged, default=again)
    weights, total = _weights(q, k, bias)
    weights = materialize(weights / total)
    mean = (g.astype(jnp.float32) * out.astype(jnp.float32)).sum(-1, keepdims=True)
    used, dweights = weights, einsum("nhsk,nhtk->nhst", g, v)
    if kept is not None:
        used = jnp.where(kept, weights * scale, 0)
        dweights = jnp.where(kept, dweights * scale, 0)
    dscores = materialize((weights * (dweights - mean)).astype(k.dtype))
    dq = einsum("nhst,nhtk->nhsk", dscores, k)
    # A small transpose here saves a large transpose inside the products.
    dk = einsum("nhks,nhst->nhkt", _flip(q), dscores)
    dv = einsum("nhks,nhst->nhkt", _flip(g), used.astype(g.dtype))
    dk, dv = (materialize(x).swapaxes(2, 3) for x in (dk, dv))
    return dq.astype(q.dtype), dk.astype(k.dtype), dv.astype(v.dtype), None, None


_weighted.defvjp(_forward, _backward)


def _weights(q, k, bias):
    """The softmax's numerator and denominator, float32."""
    scores = einsum("nhsk,nhtk->nhst", q, k) + bias
    weights = jnp.exp(scores - scores.max(-1, keepdims=True))
    return weights, weights.sum(-1, keepdims=True)


def _heads_first(x):
    return row_major(x.transpose(0, 2, 1, 3))


def _flip(x):
    return row_major(x.swapaxes(2, 3))
