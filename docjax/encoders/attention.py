"""Attention of the tokens of a segment to each other, and the choice of its kernel.

Rows are padded at the end; a padded token is never attended to. The transformer around
it is in `transformer.py`.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from docjax.config import UserError
from docjax.encoders.dropout import dropout

KERNELS = ("auto", "own", "cudnn")


def attention(
    q: Float[Array, "n s h k"],
    k: Float[Array, "n t h k"],
    v: Float[Array, "n t h k"],
    lengths: Int[Array, " n"],
    *,
    keys: Key[Array, " n"] | None = None,
    site: int = 0,
    rate: float = 0.0,
    kernel: str = "auto",
) -> Float[Array, "n s h k"]:
    """The values of the first `lengths` tokens, weighted by softmax(q k / sqrt(k)).

    A row of length 0 gives a finite answer. With `keys`, weights are dropped at
    `rate` (see `dropout.py`). "auto" takes cuDNN's kernel for bfloat16 on a GPU where
    no weight is dropped, and our own elsewhere.
    """
    if kernel not in KERNELS:
        raise UserError(f"attention {kernel!r} is none of {', '.join(KERNELS)}")
    drops = keys is not None and rate > 0
    fits = jax.default_backend() == "gpu" and q.dtype == jnp.bfloat16 and not drops
    if kernel == "cudnn" or (kernel == "auto" and fits):
        return _cudnn(q, k, v, lengths)
    return _own(q, k, v, lengths, keys if drops else None, site, rate)


def _cudnn(q: Array, k: Array, v: Array, lengths: Array) -> Array:
    # Lengths, not a mask: cuDNN turns a mask into a bias of all pairs of tokens.
    queries = jnp.minimum(lengths, q.shape[1])
    return jax.nn.dot_product_attention(
        q,
        k,
        v,
        query_seq_lengths=queries.astype(jnp.int32),
        key_value_seq_lengths=lengths.astype(jnp.int32),
        implementation="cudnn",
    )


def _own(q, k, v, lengths, keys, site, rate):
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q * q.shape[-1] ** -0.5, k, v))
    real = jnp.arange(k.shape[2]) < lengths[:, None]
    scores = jnp.einsum("nhsk,nhtk->nhst", q, k, preferred_element_type=jnp.float32)
    scores = jnp.where(real[:, None, None], scores, jnp.finfo(jnp.float32).min)
    weights = dropout(jax.nn.softmax(scores), keys, site, rate).astype(v.dtype)
    out = jnp.einsum("nhst,nhtk->nhsk", weights, v, preferred_element_type=jnp.float32)
    return out.astype(v.dtype).transpose(0, 2, 1, 3)
