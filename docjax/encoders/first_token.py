"""What the first token of a segment attends to, read from outside of the transformer."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from docjax.encoders.attention import NEVER
from docjax.kernels import EXACT


def first_token_attention(
    transformer: nn.Module,
    params: dict,
    tokens: Int[Array, "n t"],
    lengths: Int[Array, " n"],
) -> Float[Array, "n h t"]:
    """The weights of the last layer's attention, of the first token of a `Transformer`.

    Kernels of attention do not keep their weights, so they are computed again, from the
    queries and keys of the layer. The weight of padding is exactly 0.
    """
    layer = f"layer_{transformer.layers - 1}"

    def kept(module: nn.Module, method: str) -> bool:
        return module.path[:1] == (layer,) and module.name in ("query", "key")

    _, inner = transformer.apply(
        {"params": params},
        tokens,
        lengths,
        capture_intermediates=kept,
        mutable=["intermediates"],
    )
    heads = transformer.heads
    query, key = (
        inner["intermediates"][layer]["attention"][name]["__call__"][-1]
        .astype(jnp.float32)
        .reshape(len(tokens), -1, heads, transformer.width // heads)
        for name in ("query", "key")
    )
    scores = jnp.einsum("nhk,nthk->nht", query[:, 0], key, precision=EXACT)
    scores = scores * (transformer.width // heads) ** -0.5
    real = jnp.arange(tokens.shape[1]) < lengths[:, None, None]
    weights = jax.nn.softmax(jnp.where(real, scores, NEVER), axis=-1)
    return jnp.where(real, weights, 0)
