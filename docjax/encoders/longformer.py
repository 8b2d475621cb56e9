"""Longformer: a window of tokens in each layer, and a first token that sees all tokens.

Beltagy et al. 2020. Global attention is that of the first token alone, with projections
of its own: it sees every token, and every token sees it. Hugging Face's model does the
same with a `global_attention_mask` of 1 at the first token.
"""

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from docjax.encoders.blocks import NEVER, einsum
from docjax.encoders.dropout import dropout, dropout_at, dropped
from docjax.encoders.layers import Dense, Norm, PostNorm, Projection
from docjax.encoders.token_encoder import TokenEncoder
from docjax.errors import UserError


class GlobalAttention(nn.Module):
    """What the first token takes from all tokens, [n d].

    The query is multiplied with the projection of the keys, and the weights with the
    tokens: so no token is projected for a single query.
    """

    heads: int
    dropout: float
    site: int

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "n t d"],
        lengths: Int[Array, " n"],
        keys: Key[Array, " n"] | None,
    ) -> Float[Array, "n d"]:
        n, t, d = x.shape
        width = d // self.heads
        by_head = lambda kernel: kernel.astype(x.dtype).reshape(d, self.heads, width)
        q = Dense(d, name="query")(x[:, 0]).reshape(n, self.heads, width)
        kernel, _ = Projection(d, name="key")(d)
        q = (q * width**-0.5).astype(x.dtype)
        asked = einsum("nhk,dhk->nhd", q, by_head(kernel))
        # The bias of the keys is the same for all tokens, so the softmax cancels it.
        scores = einsum("nhd,ntd->nht", asked.astype(x.dtype), x)
        padding = jnp.arange(t) >= lengths[:, None, None]
        weights = jax.nn.softmax(jnp.where(padding, NEVER, scores))
        if keys is not None and dropped(self.dropout):
            at = jnp.zeros(1, jnp.int32), jnp.arange(t)
            rate = dict(site=self.site, rate=self.dropout)
            weights = dropout_at(weights[:, :, None], keys, *at, **rate)[:, :, 0]
        taken = einsum("nht,ntd->nhd", weights.astype(x.dtype), x).astype(x.dtype)
        kernel, bias = Projection(d, name="value")(d)
        out = einsum("nhd,dhk->nhk", taken, by_head(kernel))
        out = out + weights.sum(-1)[..., None] * bias.reshape(self.heads, width)
        return out.reshape(n, d)


class Attention(nn.Module):
    heads: int
    epsilon: float
    dropout: float
    attention_dropout: float
    attend: Callable
    site: int

    @nn.compact
    def __call__(self, x, lengths, keys, first):
        n, t, d = x.shape
        flat = x.reshape(n * t, d)

        def split(name: str) -> Array:
            out = Dense(d, name=name)(flat).astype(x.dtype)
            return out.reshape(n, t, self.heads, d // self.heads)

        sees_all = GlobalAttention(
            self.heads, self.attention_dropout, self.site, name="first"
        )
        out = sees_all(x, lengths, keys).astype(x.dtype)[:, None]
        if not first or self.is_initializing():
            heads = map(split, ("query", "key", "value"))
            near = self.attend(*heads, lengths, keys=keys).reshape(n, t, d)
            out = out if first else jnp.concatenate([out, near[:, 1:]], axis=1)
        asking = x[:, : out.shape[1]]
        out = Dense(d, name="output")(out.reshape(-1, d)).reshape(out.shape)
        out = dropout(out, keys, self.site + 1, self.dropout)
        return Norm(self.epsilon, name="norm")(asking + out)


class Longformer(PostNorm, TokenEncoder):
    """Longformer's encoder: segments to vectors, at a cost linear in the length.

    `window` tokens are seen around a token, half of them on each side: a number for all
    layers, or one for each layer.
    """

    vocabulary: int = 50265
    positions: int = 4098
    position_offset: int = 2
    epsilon: float = 1e-5
    types: int = 1
    window: int | tuple[int, ...] = 512

    def attending(self, number: int, site: int) -> Attention:
        sizes = self.heads, self.epsilon, self.dropout, self.attention_dropout
        attend = self.attend_at(site, window=self._windows()[number], shared=1)
        return Attention(*sizes, attend, site, parent=None)

    @nn.nowrap
    def with_layers(self, count: int) -> "Longformer":
        window = self.window if isinstance(self.window, int) else self.window[:count]
        return self.clone(layers=count, window=window)

    def _windows(self) -> tuple[int, ...]:
        """The window of each layer."""
        windows = self.window
        if isinstance(windows, int):
            windows = (windows,) * self.layers
        if len(windows) != self.layers:
            raise UserError(
                f"window has {len(windows)} numbers for {self.layers} layers: give one "
                "for each layer, or a single number"
            )
        for window in windows:
            if window < 2 or window % 2:
                raise UserError(
                    f"window {window} is not an even number from 2: half of it lies on "
                    "each side of a token"
                )
        return windows
