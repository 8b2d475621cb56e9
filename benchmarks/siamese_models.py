"""DSSM, ARC-I and HAN: a vector of each document, to be compared by cosine.

The siamese baselines of CoLDE (Jha et al., 2023), compact. Both documents of a pair go
through the same model. Word ids are padded with PADDING at the end, which never changes
a vector; a document without words has the vector zero, or for HAN a vector with zero
gradient. Axis letters: b documents, g letter trigrams, s sentences, t words of a
sentence or of a document, d width of a vector.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

PADDING = 0  # no word has this id


class DSSM(nn.Module):
    """Huang et al. (2013): three dense layers with tanh over counts of letter trigrams.

    The counts come as log(1 + count), our choice for long documents: raw counts of
    thousands would leave tanh without gradient.
    """

    widths: tuple[int, ...] = (300, 300, 128)

    @nn.compact
    def __call__(
        self, counts: Float[Array, "b g"], key: jax.Array | None = None
    ) -> Float[Array, "b d"]:
        del key
        x = counts
        for width in self.widths:
            x = nn.tanh(nn.Dense(width)(x))
        return x


class ARC1(nn.Module):
    """Hu et al. (2014), ARC-I: convolutions over words, each followed by a maximum.

    Three blocks of a convolution over 3 words and the maximum of each 2 neighbours, and
    the maximum over the document at the end. CoLDE compares the vectors by cosine; the
    original reads both vectors with an MLP.
    """

    vocabulary: int
    width: int = 300
    filters: int = 64
    blocks: int = 3

    @nn.compact
    def __call__(
        self, words: Int[Array, "b t"], key: jax.Array | None = None
    ) -> Float[Array, "b d"]:
        del key
        mask = words != PADDING
        x = nn.Embed(self.vocabulary, self.width, name="words")(words)
        for _ in range(self.blocks):
            x = nn.Conv(self.filters, (3,))(jnp.where(mask[..., None], x, 0))
            x = jnp.where(mask[..., None], nn.relu(x), 0)
            x = nn.max_pool(x, (2,), strides=(2,), padding="SAME")
            mask = nn.max_pool(mask[..., None], (2,), (2,), "SAME")[..., 0]
        return x.max(1)  # 0 at padding is no maximum: after a ReLU nothing is below 0


class HAN(nn.Module):
    """Yang et al. (2016): GRU and attention over words, then over sentences."""

    vocabulary: int
    width: int = 200
    hidden: int = 50  # of each direction
    context: int = 100

    @nn.compact
    def __call__(
        self, words: Int[Array, "b s t"], key: jax.Array | None = None
    ) -> Float[Array, "b d"]:
        del key
        b, s, t = words.shape
        mask = words != PADDING
        x = nn.Embed(self.vocabulary, self.width, name="words")(words)
        read = lambda name: Attended(self.hidden, self.context, name=name)
        sentences = read("in_sentence")(x.reshape(b * s, t, -1), mask.reshape(b * s, t))
        return read("in_document")(sentences.reshape(b, s, -1), mask.any(-1))


class Attended(nn.Module):
    """A GRU in both directions, and the attention over its states."""

    hidden: int
    context: int

    @nn.compact
    def __call__(
        self, x: Float[Array, "b t i"], mask: Bool[Array, "b t"]
    ) -> Float[Array, "b d"]:
        directions = [nn.RNN(nn.GRUCell(self.hidden)) for _ in range(2)]
        states = nn.Bidirectional(*directions)(x, seq_lengths=mask.sum(1))
        return Attention(self.context)(states, mask)


class Attention(nn.Module):
    """The mean of states with the weights softmax(u . context), u = tanh(W state + b)."""

    context: int

    @nn.compact
    def __call__(
        self, states: Float[Array, "b t d"], mask: Bool[Array, "b t"]
    ) -> Float[Array, "b d"]:
        u = nn.tanh(nn.Dense(self.context, name="hidden")(states))
        scores = nn.Dense(1, use_bias=False, name="context")(u)[..., 0]
        states = jnp.where(mask[..., None], states, 0)
        return jnp.einsum("bt,btd->bd", softmax(scores, mask), states)


def softmax(
    scores: Float[Array, "b t"], mask: Bool[Array, "b t"]
) -> Float[Array, "b t"]:
    """The softmax over the real places of each row; zeros where no place is real."""
    scores = jnp.where(mask, scores, -1e9)
    weights = jnp.where(mask, jnp.exp(scores - scores.max(1, keepdims=True)), 0)
    return weights / jnp.maximum(weights.sum(1, keepdims=True), 1e-9)
