"""ModernBERT: rotary positions, GeGLU, and windows in all but every third layer.

Warner et al. 2024. Pre-LayerNorm without biases. A layer with global attention comes
every `global_every` layers, beginning with the first; the others see a window. The two
kinds rotate queries and keys with different bases. Weights and results equal those of
Hugging Face's model.
"""

import functools
from collections.abc import Callable

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from docjax.encoders.dropout import dropout
from docjax.encoders.layers import (
    ACTIVATIONS,
    SITES,
    Dense,
    MaskedTokens,
    Norm,
    PreNormLayer,
    Projection,
    Table,
    add_after_pooling,
    recomputed,
)
from docjax.encoders.token_encoder import TokenEncoder
from docjax.errors import UserError
from docjax.kernels import materialize, product


class Rotation:
    """Rotary positions (Su et al. 2021): pairs of numbers turn with the position."""

    def __init__(self, tokens: int, width: int, theta: float) -> None:
        exponents = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
        speeds = 1 / np.float32(theta) ** exponents
        angles = jnp.arange(tokens, dtype=jnp.float32)[:, None, None] * speeds
        self.cos, self.sin = jnp.cos(angles), jnp.sin(angles)

    def __call__(self, x: Float[Array, "n s h k"]) -> Float[Array, "n s h k"]:
        """The first tokens' queries or keys, turned; in the type of `x`."""
        a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
        cos, sin = self.cos[: x.shape[1]], self.sin[: x.shape[1]]
        turned = jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
        return turned.astype(x.dtype)


class Attention(nn.Module):
    heads: int
    epsilon: float
    dropout: float
    window: int | None
    normalized: bool  # the first layer reads embeddings, which are normalized already
    attend: Callable
    site: int

    @nn.compact
    def __call__(self, x, lengths, keys, rotation, dtype, first):
        y = x
        if not self.normalized:
            y = Norm(self.epsilon, bias=False, name="norm")(x)
        y = y.astype(dtype)
        n, _, d = y.shape
        kernel, _ = Projection(3 * d, bias=False, name="qkv")(d)
        if first:
            if self.window is not None:  # all that the first token sees
                y = y[:, : self.window // 2 + 1]
            q = product(y[:, 0], kernel[:, :d])
            k, v = jnp.split(product(y.reshape(-1, d), kernel[:, d:]), 2, axis=-1)
        else:
            q, k, v = jnp.split(product(y.reshape(-1, d), kernel), 3, axis=-1)
        q, k, v = (
            x.astype(dtype).reshape(n, -1, self.heads, d // self.heads)
            for x in (q, k, v)
        )
        lengths = jnp.minimum(lengths, k.shape[1])
        out = self.attend(rotation(q), rotation(k), v, lengths, keys=keys)
        out = Dense(d, bias=False, name="output")(out.reshape(-1, d)).reshape(n, -1, d)
        return x[:, : out.shape[1]] + dropout(out, keys, self.site + 1, self.dropout)


class GatedFeedForward(nn.Module):
    """GeGLU (Shazeer 2020): the activated half of the inner layer times the other."""

    hidden: int
    epsilon: float
    activation: str
    dropout: float
    site: int

    @nn.compact
    def __call__(self, x, keys, dtype):
        d = x.shape[-1]
        y = Norm(self.epsilon, bias=False, name="norm")(x).astype(dtype)
        inner = Dense(2 * self.hidden, bias=False, name="inner")(y.reshape(-1, d))
        activated = functools.partial(_gated, ACTIVATIONS[self.activation])
        gated = materialize(recomputed(activated, inner, dtype))
        gated = gated.reshape(*x.shape[:2], self.hidden)
        gated = dropout(gated, keys, self.site, self.dropout)
        out = Dense(d, bias=False, name="outer")(gated.reshape(-1, self.hidden))
        return x + out.reshape(x.shape)


def _gated(activation: Callable, inner: Float[Array, "m i"]) -> Float[Array, "m o"]:
    out, gate = jnp.split(inner, 2, axis=-1)
    return activation(out) * gate


class Embeddings(nn.Module):
    vocabulary: int
    width: int
    epsilon: float

    @nn.compact
    def __call__(self, tokens: Int[Array, "n t"]) -> Float[Array, "n t d"]:
        words = Table(self.vocabulary, self.width, name="tokens")()
        return Norm(self.epsilon, bias=False, name="norm")(words[tokens])


class ModernBert(TokenEncoder):
    """ModernBERT's encoder: segments to vectors.

    `window` tokens are seen around a token in a layer with local attention, half of
    them on each side. `theta` and `local_theta` are the bases of the rotary positions.
    `positions` is the longest row that the model was trained for. The published models
    have no dropout.
    """

    vocabulary: int = 50368
    layers: int = 22
    hidden: int = 1152
    positions: int = 8192
    epsilon: float = 1e-5
    dropout: float = 0.0
    window: int = 128
    global_every: int = 3
    theta: float = 160_000.0
    local_theta: float = 10_000.0

    def setup(self) -> None:
        self.check_keywords(tuple(ACTIVATIONS))
        self.check_heads()
        self._check()
        self.embeddings = Embeddings(self.vocabulary, self.width, self.epsilon)
        if self.masked_lm:
            self.predict = MaskedTokens(
                self.vocabulary, self.epsilon, bias=False, name="masked_lm"
            )
        add_after_pooling(self)
        self.layer = [self._layer(i) for i in range(self.layers)]
        self.norm = Norm(self.epsilon, bias=False)

    def states(self, tokens, lengths, places, keys, first=False):
        t, width = tokens.shape[1], self.width // self.heads
        self.check_length(t)
        local = Rotation(t, width, self.local_theta)
        of_all = Rotation(t, width, self.theta)
        # The sum over the layers stays float32.
        x = dropout(self.embeddings(tokens), keys, 0, self.dropout)
        for i, layer in enumerate(self.layer):
            rotation = local if i % self.global_every else of_all
            alone = first and i == self.layers - 1
            x = layer(x, lengths, keys, rotation, self.dtype, first=alone)
        return self.norm(x)

    def _layer(self, number: int) -> PreNormLayer:
        site = 1 + SITES * number
        window = self.window if number % self.global_every else None
        sizes = self.heads, self.epsilon, self.dropout, window
        attend = self.attend_at(site, window=window)
        attention = Attention(*sizes, number == 0, attend, site, parent=None)
        sizes = self.hidden, self.epsilon, self.activation, self.dropout
        return PreNormLayer(attention, GatedFeedForward(*sizes, site + 2, parent=None))

    def _check(self) -> None:
        for name in ("window", "global_every"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} {getattr(self, name)} is below 1")
        if self.width // self.heads % 2:
            raise UserError(
                f"width {self.width} of {self.heads} heads gives an odd width of a "
                "head: rotary positions turn pairs of numbers"
            )
