"""T5's encoder: distances between tokens in place of positions, and no biases.

Raffel et al. 2020, the encoder of sentence-T5, GTR and INSTRUCTOR. A layer normalizes its
input by the root mean square. Each head adds a number to its scores that depends on how
far apart two tokens are; all layers share the table of these numbers. Weights and
results equal those of Hugging Face's model. The variant with gated layers (1.1) is not
here.
"""

import math

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from docjax.encoders.blocks import NEVER, einsum
from docjax.encoders.dropout import dropout, dropped, kept, scale
from docjax.encoders.layers import Dense, PreNormLayer, Table, add_after_pooling
from docjax.encoders.token_encoder import TokenEncoder
from docjax.errors import UserError
from docjax.kernels import materialize

SITES = 4  # dropout sites per layer: weights, attention, inner layer, feed-forward


class RootMeanSquare(nn.Module):
    """LayerNorm without a mean and a bias (Zhang and Sennrich 2019)."""

    epsilon: float

    @nn.compact
    def __call__(self, x: Float[Array, "... d"]) -> Float[Array, "... d"]:
        scale = self.param("scale", nn.initializers.ones, x.shape[-1:])
        square = jnp.square(x).mean(-1, keepdims=True)
        return x * jax.lax.rsqrt(square + self.epsilon) * jnp.asarray(scale)


class Attention(nn.Module):
    heads: int
    head_width: int
    epsilon: float
    dropout: float
    attention_dropout: float
    site: int

    @nn.compact
    def __call__(self, x, lengths, keys, distances, dtype, first):
        n, t, d = x.shape
        y = RootMeanSquare(self.epsilon, name="norm")(x).astype(dtype)
        asking = y[:, :1] if first else y

        def split(name: str, y: Array) -> Array:
            width = self.heads * self.head_width
            out = Dense(width, bias=False, name=name)(y.reshape(-1, d))
            return out.astype(dtype).reshape(n, -1, self.heads, self.head_width)

        q, k, v = split("query", asking), split("key", y), split("value", y)
        padding = jnp.arange(t) >= lengths[:, None, None, None]
        # T5 divides no scores by the root of the width: its first weights are smaller.
        scores = einsum("nshk,nthk->nhst", q, k) + distances[:, : q.shape[1]]
        weights = jax.nn.softmax(jnp.where(padding, NEVER, scores))
        if keys is not None and dropped(self.attention_dropout):
            rate = self.attention_dropout
            mask = kept(keys, self.site, weights.shape[1:], rate)
            weights = jnp.where(mask, weights * scale(rate), 0)
        out = einsum("nhst,nthk->nshk", weights.astype(dtype), v).astype(dtype)
        out = out.reshape(-1, self.heads * self.head_width)
        out = Dense(d, bias=False, name="output")(out).reshape(n, -1, d)
        out = dropout(out, keys, self.site + 1, self.dropout)
        return x[:, : out.shape[1]] + out


class FeedForward(nn.Module):
    hidden: int
    epsilon: float
    dropout: float
    site: int

    @nn.compact
    def __call__(self, x, keys, dtype):
        d = x.shape[-1]
        y = RootMeanSquare(self.epsilon, name="norm")(x).astype(dtype)
        inner = Dense(self.hidden, bias=False, name="inner")(y.reshape(-1, d))
        inner = materialize(jax.nn.relu(inner).astype(dtype))
        inner = inner.reshape(*x.shape[:2], self.hidden)
        inner = dropout(inner, keys, self.site, self.dropout)
        out = Dense(d, bias=False, name="outer")(inner.reshape(-1, self.hidden))
        return x + dropout(out.reshape(x.shape), keys, self.site + 1, self.dropout)


class Embeddings(nn.Module):
    vocabulary: int
    width: int

    @nn.compact
    def __call__(self, tokens: Int[Array, "n t"]) -> Float[Array, "n t d"]:
        return Table(self.vocabulary, self.width, name="tokens")()[tokens]


class T5(TokenEncoder):
    """T5's encoder: segments to vectors.

    `head_width` is the width of a head; `heads` of them may be wider than `width`.
    Distances fall into `buckets`, half of them for each side; all from `farthest` tokens
    share the last one. `positions` is the longest row that the model was trained for.
    `attention` chooses nothing: no kernel adds numbers to the scores.
    """

    vocabulary: int = 32128
    epsilon: float = 1e-6
    activation: str = "relu"
    head_width: int = 64
    buckets: int = 32
    farthest: int = 128

    def setup(self) -> None:
        self.check_keywords(("relu",))
        if self.masked_lm:
            raise UserError(
                "T5 has no head for masked tokens: set encoder.segment.masked_lm to "
                "False and train with an objective without masked tokens, or give a BERT"
            )
        if self.buckets < 4 or self.buckets % 4 or self.farthest <= self.buckets // 4:
            raise UserError(
                f"{self.buckets} buckets for distances up to {self.farthest}: give a "
                "multiple of 4 buckets, and distances beyond a quarter of it"
            )
        self.embeddings = Embeddings(self.vocabulary, self.width)
        self.distances = Table(self.buckets, self.heads)
        add_after_pooling(self)
        self.layer = [self._layer(number) for number in range(self.layers)]
        self.norm = RootMeanSquare(self.epsilon)

    def states(self, tokens, lengths, places, keys, first=False):
        t = tokens.shape[1]
        self.check_length(t)
        numbers = buckets(t, self.buckets, self.farthest)
        distances = self.distances()[numbers].transpose(2, 0, 1)
        # The sum over the layers stays float32.
        x = dropout(self.embeddings(tokens), keys, 0, self.dropout)
        for i, layer in enumerate(self.layer):
            alone = first and i == self.layers - 1
            x = layer(x, lengths, keys, distances, self.dtype, first=alone)
        return dropout(self.norm(x), keys, 1 + SITES * self.layers, self.dropout)

    def _layer(self, number: int) -> PreNormLayer:
        site = 1 + SITES * number
        rates = self.epsilon, self.dropout
        attention = Attention(
            self.heads,
            self.head_width,
            *rates,
            self.attention_dropout,
            site,
            parent=None,
        )
        feed = FeedForward(self.hidden, *rates, site + 2, parent=None)
        return PreNormLayer(attention, feed)


def buckets(tokens: int, count: int, farthest: int) -> Int[np.ndarray, "t t"]:
    """The bucket of the distance from each token (row) to each other (column).

    Half of the buckets are for tokens behind. Half of each half has one distance each,
    and the others grow with the logarithm of the distance.
    """
    distance = np.arange(tokens) - np.arange(tokens)[:, None]
    side = count // 2
    exact = side // 2
    away = np.abs(distance)
    ratio = np.log(np.maximum(away, 1).astype(np.float32) / exact)
    # All in float32, as torch has it: rounding decides at the ends of a bucket.
    ratio = ratio / math.log(farthest / exact) * (side - exact)
    far = exact + ratio.astype(np.int64)
    near = np.where(away < exact, away, np.minimum(far, side - 1))
    return np.where(distance > 0, side, 0) + near
