"""Segment vectors to one document vector without parameters, and training heads."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class Mean(nn.Module):
    """The mean of the segment vectors, weighted by their tokens.

    One segment gives its own vector. `normalize` scales the mean to length 1.
    """

    normalize: bool = False

    @nn.compact
    def __call__(
        self,
        vectors: Float[Array, "*s p d"],
        lengths: Int[Array, "*s p"],
        adjacency=None,
        edges=None,
    ) -> Float[Array, "*s d"]:
        del adjacency, edges
        weights = lengths / jnp.maximum(lengths.sum(-1, keepdims=True), 1)
        return self.query(jnp.einsum("...p,...pd->...d", weights, vectors))

    def query(self, vectors: Float[Array, "*s d"]) -> Float[Array, "*s d"]:
        """Query vectors: one segment's own."""
        return unit(vectors) if self.normalize else vectors


def unit(vectors: Float[Array, "*s d"]) -> Float[Array, "*s d"]:
    """Vectors of length 1; zero stays zero."""
    square = (vectors**2).sum(-1, keepdims=True)
    return vectors / jnp.sqrt(jnp.maximum(square, 1e-24))


class Classifier(nn.Module):
    """Dropout and a linear layer from document vectors to logits of `classes`."""

    classes: int
    dropout: float = 0.1

    @nn.compact
    def __call__(
        self, vectors: Float[Array, "*s d"], key: jax.Array | None = None
    ) -> Float[Array, "*s c"]:
        vectors = nn.Dropout(self.dropout, deterministic=key is None)(vectors, rng=key)
        return nn.Dense(self.classes, name="logits")(vectors)
