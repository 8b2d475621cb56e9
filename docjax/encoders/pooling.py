"""A document encoder without parameters (the mean), and training heads."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from docjax.encoders.document_defaults import DocumentDefaults
from docjax.kernels import EXACT, unit


def weighted_mean(
    vectors: Float[Array, "*s p d"], lengths: Int[Array, "*s p"]
) -> Float[Array, "*s d"]:
    """The mean of the segment vectors, weighted by their numbers of tokens."""
    weights = lengths / jnp.maximum(lengths.sum(-1, keepdims=True), 1)
    return jnp.einsum("...p,...pd->...d", weights, vectors, precision=EXACT)


class Mean(DocumentDefaults):
    """The mean of the segment vectors, weighted by their numbers of tokens.

    A document of one segment gets the segment's vector. `normalize` scales the mean to
    length 1.
    """

    exported_as = "Mean"
    normalize: bool = False

    @nn.compact
    def __call__(
        self, vectors: Float[Array, "*s p d"], lengths: Int[Array, "*s p"], *unused: Any
    ) -> Float[Array, "*s d"]:
        return self.query(weighted_mean(vectors, lengths))

    def query(self, vectors: Float[Array, "*s d"]) -> Float[Array, "*s d"]:
        return unit(vectors) if self.normalize else vectors


class Classifier(nn.Module):
    """Dropout and a linear layer from document vectors to logits of `classes`."""

    classifies = True
    predicts = False
    classes: int
    dropout: float = 0.1

    @nn.compact
    def __call__(
        self, vectors: Float[Array, "*s d"], key: jax.Array | None = None
    ) -> Float[Array, "*s c"]:
        vectors = nn.Dropout(self.dropout, deterministic=key is None)(vectors, rng=key)
        return nn.Dense(self.classes, precision=EXACT, name="logits")(vectors)


class TrainingHead(nn.Module):
    """A dense layer with tanh between embeddings and the objective (SimCSE)."""

    classifies = False
    predicts = False

    @nn.compact
    def __call__(
        self, vectors: Float[Array, "*s d"], key: jax.Array | None = None
    ) -> Float[Array, "*s d"]:
        del key
        dense = nn.Dense(vectors.shape[-1], precision=EXACT, name="dense")
        return jnp.tanh(dense(vectors))


class Predictor(nn.Module):
    """The views' vectors, followed by a small network's prediction from each vector.

    The network: dropout, linear without bias, batch normalisation over the documents of
    a view, ReLU, linear (SimSiam; DECA has `hidden` 64 and dropout 0.3). Only training
    uses predictions, so there are batch statistics and no running statistics.
    """

    classifies = False
    predicts = True
    hidden: int = 64
    dropout: float = 0.0

    @nn.compact
    def __call__(
        self, vectors: Float[Array, "v b d"], key: jax.Array | None = None
    ) -> Float[Array, "_ b d"]:
        inputs = nn.Dropout(self.dropout, deterministic=key is None)(vectors, rng=key)
        dense = nn.Dense(self.hidden, use_bias=False, precision=EXACT, name="inner")
        inner = dense(inputs)
        mean, square = inner.mean(1, keepdims=True), inner.var(1, keepdims=True)
        scale = self.param("scale", nn.initializers.ones, (self.hidden,))
        shift = self.param("shift", nn.initializers.zeros, (self.hidden,))
        inner = (inner - mean) * jax.lax.rsqrt(square + 1e-5) * scale + shift
        dense = nn.Dense(vectors.shape[-1], precision=EXACT, name="outer")
        return jnp.concatenate([vectors, dense(nn.relu(inner))])
