"""The layers that the segment encoders share: from dense layers to those of BERT.

`PostNorm` puts BERT's layers together; other families put `PreNormLayer`s together.
"""

import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from docjax.encoders.blocks import einsum
from docjax.encoders.dropout import dropout
from docjax.encoders.word_vectors import WordVectors
from docjax.kernels import materialize, normalized, product


def gelu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """x times the normal distribution function of x (Hendrycks and Gimpel, 2016)."""
    # jax.nn.gelu uses erfc: exact for large negative x too, but three times as slow.
    return 0.5 * x * (1 + jax.lax.erf(x * 0.5**0.5))


ACTIVATIONS = {
    "gelu": gelu,
    "gelu_new": functools.partial(jax.nn.gelu, approximate=True),
}
SITES = 3  # dropout sites per layer: attention weights, attention, feed-forward
normal = nn.initializers.normal(0.02)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 2))
def recomputed(
    function: Callable[[Array], Array], x: Float[Array, "m i"], dtype: Any
) -> Float[Array, "m o"]:
    """`function(x)` of float32 `x`, as `dtype`.

    The backward pass computes it again from `x` in `dtype`, which is all that is kept.
    With bfloat16 that is half of the bytes.
    """
    return function(x).astype(dtype)


def _of_recomputed(function, dtype, x, gradient):
    # Without the barrier XLA would keep parts of the first computation.
    x = jax.lax.optimization_barrier(x).astype(jnp.float32)
    return jax.vjp(lambda x: function(x).astype(dtype), x)[1](gradient)


recomputed.defvjp(
    lambda function, x, dtype: (recomputed(function, x, dtype), x.astype(dtype)),
    _of_recomputed,
)


class Projection(nn.Module):
    """The kernel and the bias of a dense layer."""

    width: int
    bias: bool = True

    @nn.compact
    def __call__(self, inputs: int) -> tuple[Array, Array | None]:
        kernel = jnp.asarray(self.param("kernel", normal, (inputs, self.width)))
        if not self.bias:
            return kernel, None
        bias = self.param("bias", nn.initializers.zeros, (self.width,))
        return kernel, jnp.asarray(bias)


class Dense(Projection):
    def __call__(self, x: Float[Array, "m i"]) -> Float[Array, "m o"]:
        kernel, bias = super().__call__(x.shape[-1])
        out = product(x, kernel)
        return materialize(out if bias is None else out + bias)


class Table(nn.Module):
    rows: int
    width: int
    spread: float = 0.02  # standard deviation of the numbers before training

    @nn.compact
    def __call__(self) -> Float[Array, "r d"]:
        begin = nn.initializers.normal(self.spread)
        table = self.param("embedding", begin, (self.rows, self.width))
        return jnp.asarray(table)  # parameters may come as NumPy arrays


class Norm(nn.Module):
    epsilon: float
    bias: bool = True

    @nn.compact
    def __call__(self, x: Float[Array, "... d"]) -> Float[Array, "... d"]:
        scale = self.param("scale", nn.initializers.ones, x.shape[-1:])
        bias = None
        if self.bias:
            bias = jnp.asarray(self.param("bias", nn.initializers.zeros, x.shape[-1:]))
        x = x.astype(jnp.float32)
        return normalized(x, jnp.asarray(scale), bias, self.epsilon)


class Embeddings(nn.Module):
    """Token, position and type embeddings, summed and normalized.

    A table of 0 rows is left out: of types, sections or chunks.
    From random weights, positions begin at a tenth of the published spread, and types at
    zero: all texts have them alike, and a mean of random token vectors is short beside them.
    """

    vocabulary: int
    width: int
    positions: int
    position_offset: int
    types: int
    epsilon: float
    sections: int = 0
    chunks: int = 0

    @nn.compact
    def __call__(
        self, tokens: Int[Array, "n t"], places: Int[Array, "n 2"] | None
    ) -> Float[Array, "n t d"]:
        positions = Table(self.positions, self.width, spread=0.002, name="positions")()
        # Padding lies at the end, so all rows have the same positions.
        at = slice(self.position_offset, self.position_offset + tokens.shape[1])
        shared = positions[at]
        if self.types:
            types = Table(self.types, self.width, spread=0.0, name="types")()
            shared = shared + types[0]
        x = Table(self.vocabulary, self.width, name="tokens")()[tokens] + shared
        # The place of a segment in its document (CoLDE, 3.2).
        of_places = ("sections", self.sections), ("chunks", self.chunks)
        for axis, (name, rows) in enumerate(of_places):
            if rows:
                table = Table(rows, self.width, name=name)()
                x = x + table[jnp.minimum(places[:, axis], rows - 1)][:, None]
        return Norm(self.epsilon, name="norm")(x)


class FeedForward(nn.Module):
    hidden: int
    epsilon: float
    activation: str
    dropout: float
    site: int

    @nn.compact
    def __call__(self, x, keys):
        flat = x.reshape(-1, x.shape[-1])
        out = Dense(self.hidden, name="inner")(flat)
        out = materialize(recomputed(ACTIVATIONS[self.activation], out, x.dtype))
        out = Dense(x.shape[-1], name="outer")(out).reshape(x.shape)
        out = dropout(out, keys, self.site, self.dropout)
        return Norm(self.epsilon, name="norm")(x + out)


class SelfAttention(nn.Module):
    """Queries, keys and values of all heads, and the tokens after `attend` and a sum.

    attend: (queries, keys, values, lengths, keys of dropout) -> values, by head.
    """

    heads: int
    epsilon: float
    dropout: float
    attend: Callable
    site: int

    @nn.compact
    def __call__(self, x, lengths, keys, first):
        n, t, d = x.shape
        flat = x.reshape(n * t, d)
        asking = x[:, :1] if first else x

        def split(name: str, x: Array) -> Array:
            out = Dense(d, name=name)(x).astype(x.dtype)
            return out.reshape(n, -1, self.heads, d // self.heads)

        out = self.attend(
            split("query", asking.reshape(-1, d) if first else flat),
            split("key", flat),
            split("value", flat),
            lengths,
            keys=keys,
        )
        out = Dense(d, name="output")(out.reshape(-1, d)).reshape(n, -1, d)
        out = dropout(out, keys, self.site + 1, self.dropout)
        return Norm(self.epsilon, name="norm")(asking + out)


class Layer(nn.Module):
    """Attention and feed-forward, each added to its input and normalized (BERT)."""

    attention: nn.Module
    feed_forward: FeedForward

    def __call__(self, x, lengths, keys, first=False):
        """The tokens after this layer; with `first`, the first token alone."""
        dtype = x.dtype
        x = self.attention(x, lengths, keys, first).astype(dtype)
        return self.feed_forward(x, keys).astype(dtype)


class PreNormLayer(nn.Module):
    """Attention and feed-forward, each of which normalizes its input and adds to it."""

    attention: nn.Module
    feed_forward: nn.Module

    def __call__(self, x, lengths, keys, positions, dtype, first=False):
        """The tokens after this layer; with `first`, the first token alone.

        `positions` tells the attention where tokens are, in the form that it asks for.
        """
        x = self.attention(x, lengths, keys, positions, dtype, first)
        return self.feed_forward(x, keys, dtype)


class MaskedTokens(nn.Module):
    """The head of masked language modelling: states to scores of the vocabulary.

    Dense, activation, LayerNorm, and the tied word embeddings (Devlin et al. 2019). It
    multiplies in the type of the states, and the scores are float32.
    """

    vocabulary: int
    epsilon: float
    bias: bool = True  # of the dense layer and the LayerNorm
    activation: str = "gelu"

    @nn.compact
    def __call__(
        self, states: Float[Array, "m d"], words: Float[Array, "r d"]
    ) -> Float[Array, "m r"]:
        inner = Dense(states.shape[-1], self.bias, name="dense")(states)
        inner = ACTIVATIONS[self.activation](inner)
        inner = Norm(self.epsilon, self.bias, name="norm")(inner)
        bias = self.param("bias", nn.initializers.zeros, (self.vocabulary,))
        inner, words = (x.astype(states.dtype) for x in (inner, words))
        return einsum("md,rd->mr", inner, words) + bias


def add_after_pooling(encoder: nn.Module) -> None:
    """Gives a `TokenEncoder` the layers that follow the pooling, in its `setup`."""
    if encoder.projection:
        encoder.project = Dense(encoder.projection, name="projection")
    if encoder.words:
        encoder.of_words = WordVectors(encoder.vocabulary, encoder.words, name="words")


class PostNorm(nn.Module):
    """How the encoders with BERT's layers are put together and give the states of tokens.

    For a `TokenEncoder` that also has `types`, the rows of the table of token types (of
    which the first is read; 0: no table), and that says how a layer attends.
    """

    def setup(self) -> None:
        self.check_keywords(tuple(ACTIVATIONS))
        self.check_heads()
        rows = self.positions, self.position_offset, self.types
        self.embeddings = Embeddings(
            self.vocabulary, self.width, *rows, self.epsilon, *self.place_rows
        )
        if self.masked_lm:
            # BERT's head has the activation of its layers, RoBERTa's has gelu.
            own = {} if self.position_offset else {"activation": self.activation}
            self.predict = MaskedTokens(
                self.vocabulary, self.epsilon, **own, name="masked_lm"
            )
        add_after_pooling(self)
        self.layer = [self._layer(number) for number in range(self.layers)]

    def states(self, tokens, lengths, places, keys, first=False):
        self.check_length(tokens.shape[1])
        x = dropout(self.embeddings(tokens, places), keys, 0, self.dropout)
        x = x.astype(self.dtype)
        for i, layer in enumerate(self.layer):
            x = layer(x, lengths, keys, first=first and i == self.layers - 1)
        return x

    def attending(self, number: int, site: int) -> nn.Module:
        """The attention of layer `number`; `site` is its first site of dropout."""
        raise NotImplementedError

    def _layer(self, number: int) -> Layer:
        site = 1 + SITES * number
        sizes = self.hidden, self.epsilon, self.activation, self.dropout
        feed_forward = FeedForward(*sizes, site + 2, parent=None)
        return Layer(self.attending(number, site), feed_forward)
