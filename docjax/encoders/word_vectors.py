"""A vector of the words of a segment, beside the vector of its transformer.

The table begins at zero, so that it changes nothing before it is fitted to a corpus
(`docjax/recipe/words.py`). It keeps what a checkpoint does not know: the names and terms
of the corpus.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from docjax.encoders.segment_defaults import SegmentDefaults
from docjax.kernels import EXACT


class WordVectors(SegmentDefaults):
    """The sum of the vectors of a segment's words, divided by its number of tokens.

    A word that occurs c times counts 1 + ln c times (sublinear TF-IDF). Sums weighted
    by tokens are therefore sums of words over the segments of a document.
    """

    vocabulary: int
    width: int

    @nn.compact
    def __call__(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        places: Int[Array, "n 2"] | None = None,
        keys: jax.Array | None = None,
    ) -> Float[Array, "n k"]:
        """One vector a segment; exactly zero where the length is 0."""
        del places, keys
        table = self.param(
            "table", nn.initializers.zeros, (self.vocabulary, self.width)
        )
        real = jnp.arange(tokens.shape[1]) < lengths[:, None]
        same = (tokens[:, :, None] == tokens[:, None, :]) & real[:, None, :]
        counts = jnp.maximum(same.sum(-1), 1)
        weights = jnp.where(real, (1 + jnp.log(counts)) / counts, 0)
        weights = weights / jnp.maximum(lengths, 1)[:, None]
        vectors = jnp.asarray(table)[tokens]
        return jnp.einsum("nt,ntk->nk", weights, vectors, precision=EXACT)
