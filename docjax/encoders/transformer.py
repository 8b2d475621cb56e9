"""The segment encoder: RoBERTa and BERT, tokens of one segment -> one vector.

Post-LayerNorm as published (Devlin et al. 2019, Liu et al. 2019). Weights and results
equal those of Hugging Face's models. Attention is in `attention.py`, dropout in
`dropout.py`, the names of Hugging Face's weights in `huggingface/names.py`.
"""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from docjax.encoders.attention import attention
from docjax.encoders.dropout import dropout
from docjax.encoders.word_vectors import WordVectors
from docjax.errors import UserError
from docjax.kernels import materialize, product, unit


def gelu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """x times the normal distribution function of x (Hendrycks and Gimpel, 2016)."""
    # jax.nn.gelu uses erfc: exact for large negative x too, but three times as slow.
    return 0.5 * x * (1 + jax.lax.erf(x * 0.5**0.5))


ACTIVATIONS = {
    "gelu": gelu,
    "gelu_new": functools.partial(jax.nn.gelu, approximate=True),
}
POOLINGS = ("first", "mean", None)
DTYPES = ("float32", "bfloat16")
SITES = 3  # dropout sites per layer: attention weights, attention, feed-forward
normal = nn.initializers.normal(0.02)


class Dense(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x: Float[Array, "m i"]) -> Float[Array, "m o"]:
        kernel = self.param("kernel", normal, (x.shape[-1], self.width))
        bias = self.param("bias", nn.initializers.zeros, (self.width,))
        return materialize(product(x, jnp.asarray(kernel)) + bias)


class Table(nn.Module):
    rows: int
    width: int

    @nn.compact
    def __call__(self) -> Float[Array, "r d"]:
        table = self.param("embedding", normal, (self.rows, self.width))
        return jnp.asarray(table)  # parameters may come as NumPy arrays


class Norm(nn.Module):
    epsilon: float

    @nn.compact
    def __call__(self, x: Float[Array, "... d"]) -> Float[Array, "... d"]:
        scale = self.param("scale", nn.initializers.ones, x.shape[-1:])
        bias = self.param("bias", nn.initializers.zeros, x.shape[-1:])
        x = materialize(x.astype(jnp.float32))
        centred = x - x.mean(-1, keepdims=True)
        variance = jnp.square(centred).mean(-1, keepdims=True)
        return materialize(
            centred * jax.lax.rsqrt(variance + self.epsilon) * scale + bias
        )


class Embeddings(nn.Module):
    """Token, position and type embeddings, summed and normalized."""

    vocabulary: int
    width: int
    positions: int
    position_offset: int
    types: int
    epsilon: float
    sections: int
    chunks: int

    @nn.compact
    def __call__(
        self, tokens: Int[Array, "n t"], places: Int[Array, "n 2"] | None
    ) -> Float[Array, "n t d"]:
        positions = Table(self.positions, self.width, name="positions")()
        # Padding lies at the end, so all rows have the same positions.
        at = slice(self.position_offset, self.position_offset + tokens.shape[1])
        types = Table(self.types, self.width, name="types")()
        words = Table(self.vocabulary, self.width, name="tokens")()[tokens]
        x = words + (positions[at] + types[0])
        # The place of a segment in its document (CoLDE, 3.2).
        for axis, (name, rows) in enumerate(
            (("sections", self.sections), ("chunks", self.chunks))
        ):
            if rows:
                table = Table(rows, self.width, name=name)()
                x = x + table[jnp.minimum(places[:, axis], rows - 1)][:, None]
        return Norm(self.epsilon, name="norm")(x)


class MaskedTokens(nn.Module):
    """The head of masked language modelling: states to scores of the vocabulary.

    Dense, GELU, LayerNorm, and the tied word embeddings (Devlin et al. 2019).
    """

    vocabulary: int
    epsilon: float

    @nn.compact
    def __call__(
        self, states: Float[Array, "m d"], words: Float[Array, "r d"]
    ) -> Float[Array, "m r"]:
        inner = gelu(Dense(states.shape[-1], name="dense")(states))
        inner = Norm(self.epsilon, name="norm")(inner)
        bias = self.param("bias", nn.initializers.zeros, (self.vocabulary,))
        return jax.lax.dot(inner, words.T) + bias


class Attention(nn.Module):
    heads: int
    epsilon: float
    dropout: float
    attention_dropout: float
    kernel: str
    site: int

    @nn.compact
    def __call__(self, x, lengths, keys, first):
        n, t, d = x.shape
        flat = x.reshape(n * t, d)
        asking = x[:, :1].reshape(n, d) if first else flat

        def split(name: str, x: Array) -> Array:
            out = Dense(d, name=name)(x).astype(x.dtype)
            return out.reshape(n, -1, self.heads, d // self.heads)

        out = attention(
            split("query", asking),
            split("key", flat),
            split("value", flat),
            lengths,
            keys=keys,
            site=self.site,
            rate=self.attention_dropout,
            kernel=self.kernel,
        )
        out = Dense(d, name="output")(out.reshape(-1, d)).reshape(n, -1, d)
        out = dropout(out, keys, self.site + 1, self.dropout)
        return Norm(self.epsilon, name="norm")(asking.reshape(n, -1, d) + out)


class FeedForward(nn.Module):
    hidden: int
    epsilon: float
    activation: str
    dropout: float
    site: int

    @nn.compact
    def __call__(self, x, keys):
        flat = x.reshape(-1, x.shape[-1])
        # Recomputing in the backward pass is cheaper than what autodiff would keep.
        act = jax.checkpoint(ACTIVATIONS[self.activation])
        out = Dense(self.hidden, name="inner")(flat)
        out = materialize(act(out.astype(jnp.float32)).astype(x.dtype))
        out = Dense(x.shape[-1], name="outer")(out).reshape(x.shape)
        out = dropout(out, keys, self.site, self.dropout)
        return Norm(self.epsilon, name="norm")(x + out)


class Layer(nn.Module):
    heads: int
    hidden: int
    epsilon: float
    activation: str
    dropout: float
    attention_dropout: float
    kernel: str
    site: int

    @nn.compact
    def __call__(self, x, lengths, keys, first=False):
        """The tokens after this layer; with `first`, the first token alone."""
        dtype = x.dtype
        attend = Attention(
            self.heads,
            self.epsilon,
            self.dropout,
            self.attention_dropout,
            self.kernel,
            self.site,
            name="attention",
        )
        feed = FeedForward(
            self.hidden,
            self.epsilon,
            self.activation,
            self.dropout,
            self.site + 2,
            name="feed_forward",
        )
        x = attend(x, lengths, keys, first).astype(dtype)
        return feed(x, keys).astype(dtype)


class Transformer(nn.Module):
    """RoBERTa's or BERT's encoder: segments to vectors.

    RoBERTa counts positions from 2, BERT from 0 (`position_offset`). A segment's vector
    is the state of its first token or the mean over its real tokens (`pooling`: "first"
    or "mean"; None: as `init` asks, and the mean from scratch). `normalize` scales the vector to length 1, as many sentence encoders do. `dtype`
    "bfloat16" multiplies and keeps activations in bfloat16; parameters, softmax,
    LayerNorm and sums stay float32. `attention` names a kernel of `attention.py`.
    `dropout` is that of hidden states. `attention_dropout` drops attention weights, 0.1
    in the papers: no fast kernel of a GPU does this, so 0 is the default.
    `sections` and `chunks` are the rows of two tables that embed a segment's place in
    its document: a place beyond a table takes the last row, 0 leaves the table out.
    `masked_lm` adds the layers that predict masked tokens. `words` is the width of
    `WordVectors`, which follow the transformer's vector; 0 leaves them out. `left_out`
    first tokens of a segment are left out of the mean: those of a prompt.
    """

    has_towers = False
    vocabulary: int = 50265
    layers: int = 12
    width: int = 768
    heads: int = 12
    hidden: int = 3072
    positions: int = 514
    position_offset: int = 2
    types: int = 1
    epsilon: float = 1e-5
    activation: str = "gelu"
    dropout: float = 0.1
    pooling: str | None = "first"
    normalize: bool = False
    dtype: str = "float32"
    attention: str = "auto"
    sections: int = 0
    chunks: int = 0
    masked_lm: bool = False
    words: int = 0
    left_out: int = 0
    attention_dropout: float = 0.0

    def setup(self) -> None:
        self._check()
        self.embeddings = Embeddings(
            self.vocabulary,
            self.width,
            self.positions,
            self.position_offset,
            self.types,
            self.epsilon,
            self.sections,
            self.chunks,
        )
        if self.masked_lm:
            self.predict = MaskedTokens(self.vocabulary, self.epsilon, name="masked_lm")
        if self.words:
            self.of_words = WordVectors(self.vocabulary, self.words, name="words")
        self.layer = [
            Layer(
                self.heads,
                self.hidden,
                self.epsilon,
                self.activation,
                self.dropout,
                self.attention_dropout,
                self.attention,
                site=1 + SITES * i,
            )
            for i in range(self.layers)
        ]

    def __call__(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        places: Int[Array, "n 2"] | None = None,
        keys: Key[Array, " n"] | None = None,
    ) -> Float[Array, "n d"]:
        """One float32 vector per row; exactly zero where the length is 0.

        `lengths` counts each row's real tokens; padding follows them. `keys`, one per
        row, turn dropout on.

        Raises:
          UserError: if rows are longer than the position table.
        """
        if self.masked_lm and self.is_initializing():
            zeros = jnp.zeros((len(tokens), 1), jnp.int32)
            self.token_loss(tokens, lengths, places, zeros, zeros)
        if self.pooling == "first":
            x = self._states(tokens, lengths, places, keys, first=True)[:, 0]
            x = jnp.where(lengths[:, None] > 0, x.astype(jnp.float32), 0)
        else:
            x = self.hidden_states(tokens, lengths, places, keys)
            x = x[:, self.left_out :].sum(1)
            x = x / jnp.maximum(lengths - self.left_out, 1)[:, None]
        x = unit(x) if self.normalize else x
        if self.words:
            x = jnp.concatenate([x, self.of_words(tokens, lengths)], axis=-1)
        return x

    def hidden_states(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        places: Int[Array, "n 2"] | None = None,
        keys: Key[Array, " n"] | None = None,
    ) -> Float[Array, "n t d"]:
        """The last layer's float32 state of each token; exactly zero at padding."""
        x = self._states(tokens, lengths, places, keys).astype(jnp.float32)
        real = jnp.arange(tokens.shape[1]) < lengths[:, None]
        return jnp.where(real[:, :, None], x, 0)

    def token_loss(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        places: Int[Array, "n 2"] | None,
        positions: Int[Array, "n a"],
        answers: Int[Array, "n a"],
        keys: Key[Array, " n"] | None = None,
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The summed cross-entropy of masked tokens, and the number of right ones.

        positions: where each row's masked tokens are; answers: their ids, -1 if unused.
        """
        scores = self.token_scores(tokens, lengths, places, positions, keys)
        answers = answers.reshape(-1)
        real, target = answers >= 0, jnp.maximum(answers, 0)
        picked = jnp.take_along_axis(scores, target[:, None], axis=1)[:, 0]
        losses = jax.nn.logsumexp(scores, axis=-1) - picked
        right = (scores.argmax(-1) == target) & real
        return jnp.where(real, losses, 0).sum(), right.sum().astype(jnp.float32)

    def token_scores(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        places: Int[Array, "n 2"] | None,
        positions: Int[Array, "n a"],
        keys: Key[Array, " n"] | None = None,
    ) -> Float[Array, "m r"]:
        """The scores of the vocabulary at `positions`, row after row: m = n * a."""
        states = self.hidden_states(tokens, lengths, places, keys)
        masked = jnp.take_along_axis(states, positions[..., None], axis=1)
        words = self.variables["params"]["embeddings"]["tokens"]["embedding"]
        return self.predict(masked.reshape(-1, self.width), jnp.asarray(words))

    def _states(self, tokens, lengths, places, keys, first=False):
        t = tokens.shape[1]
        if t > self.positions - self.position_offset:
            raise UserError(
                f"segments have {t} tokens, but the position table has room for "
                f"{self.positions - self.position_offset}: lower limits.segment_tokens"
            )
        x = dropout(self.embeddings(tokens, places), keys, 0, self.dropout)
        x = x.astype(self.dtype)
        for i, layer in enumerate(self.layer):
            x = layer(x, lengths, keys, first=first and i == self.layers - 1)
        return x

    def _check(self) -> None:
        for value, name, valid in (
            (self.activation, "activation", tuple(ACTIVATIONS)),
            (self.pooling, "pooling", POOLINGS),
            (self.dtype, "dtype", DTYPES),
        ):
            if value not in valid:
                names = ", ".join(map(str, valid))
                raise UserError(f"{name} {value!r} is not one of {names}")
        for name in ("dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 0.99:
                raise UserError(f"{name} {getattr(self, name)} is not in [0, 0.99)")
        if self.width % self.heads:
            raise UserError(
                f"width {self.width} is not a multiple of heads {self.heads}: "
                "set heads to a divisor of width"
            )
