"""A segment is the mean of its word vectors (Doc2vecC; DECA, Eq. 1).

Words are not read in order; what trains them does (`objectives/negative_sampling.py`).
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from docjax.errors import UserError
from docjax.kernels import EXACT


class WordAverage(nn.Module):
    """The mean of the word vectors of a segment; without words, zero.

    Token 0 is padding. `words` are the vectors U, `targets` the vectors V of words to
    be predicted, which only training reads: it works without.
    """

    has_towers = masked_lm = False
    vocabulary: int
    width: int = 100

    def setup(self) -> None:
        if self.width < 1:
            raise UserError(
                f"encoder.segment.width {self.width}: give one of at least 1"
            )
        shape = (self.vocabulary, self.width)
        self.words = self.param("words", _uniform, shape)
        if self.is_initializing():
            self.param("targets", nn.initializers.zeros, shape)

    def __call__(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        places: Int[Array, "n 2"] | None = None,
        keys: jax.Array | None = None,
    ) -> Float[Array, "n d"]:
        """Segment vectors; without dropout, and wherever a segment lies."""
        del places, keys
        real = jnp.arange(tokens.shape[1]) < lengths[:, None]
        weights = real / jnp.maximum(lengths, 1)[:, None]
        return jnp.einsum("nt,ntd->nd", weights, self.words[tokens], precision=EXACT)


def _uniform(key: jax.Array, shape: tuple[int, int]) -> Float[Array, "w d"]:
    """Between -0.5 / d and 0.5 / d; zero for the padding."""
    found = jax.random.uniform(key, shape, minval=-0.5, maxval=0.5) / shape[1]
    return found.at[0].set(0.0)
