"""The vector of a segment is the mean of its word vectors (Doc2vecC; DECA, Eq. 1).

The encoder ignores the order of words; training uses the order
(`objectives/negative_sampling.py`).
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from docjax.encoders.segment_defaults import SegmentDefaults
from docjax.errors import UserError
from docjax.kernels import EXACT


class WordAverage(SegmentDefaults):
    """The mean of the word vectors of a segment; zero for a segment without words.

    Token 0 is padding. `words` are the vectors U. `targets` are the vectors V of
    predicted words; only training reads them, so encoding works without them.
    """

    averages_words = True
    chosen = ()  # weights decide all keywords
    vocabulary: int
    width: int = 100

    def setup(self) -> None:
        if self.width < 1:
            raise UserError(
                f"encoder.segment.width {self.width} is below 1: set it to 1 or more"
            )
        shape = (self.vocabulary, self.width)
        self.table = self.param("words", _uniform, shape)
        if self.is_initializing():
            self.param("targets", nn.initializers.zeros, shape)

    def __call__(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        places: Int[Array, "n 2"] | None = None,
        keys: jax.Array | None = None,
    ) -> Float[Array, "n d"]:
        """Segment vectors; there is no dropout, and places do not matter."""
        del places, keys
        real = jnp.arange(tokens.shape[1]) < lengths[:, None]
        weights = real / jnp.maximum(lengths, 1)[:, None]
        return jnp.einsum("nt,ntd->nd", weights, self.table[tokens], precision=EXACT)

    def word_vectors(self, params: Any) -> Float[Array, "w d"]:
        """The vectors U; the report shows which words are near to each other."""
        return params["words"]


def _uniform(key: jax.Array, shape: tuple[int, int]) -> Float[Array, "w d"]:
    """Uniform numbers from -0.5 / d to 0.5 / d; zero for the padding."""
    table = jax.random.uniform(key, shape, minval=-0.5, maxval=0.5) / shape[1]
    return table.at[0].set(0.0)
