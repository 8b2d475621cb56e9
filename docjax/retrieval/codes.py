"""Vectors in a quarter or a thirty-second of their size, for a first choice.

int8      each number rounded to one of 255 steps of its vector
binary    the signs alone, eight to a byte

What they find is scored again with the vectors themselves (`docjax.retrieval.shortlist`).
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

KINDS = {"int8": np.int8, "binary": np.uint8}


class Codes(NamedTuple):
    """The codes of documents, int8 [n w d] or uint8 [n w d/8], and a step of each."""

    codes: Array
    steps: Float[Array, "n w"]

    def decoded(self) -> Float[Array, "n w d"]:
        """About the vectors that were coded."""
        if self.codes.dtype == jnp.uint8:
            bits = (self.codes[..., None] >> jnp.arange(7, -1, -1, jnp.uint8)) & 1
            signs = bits.reshape(*self.codes.shape[:-1], -1).astype(jnp.float32)
            return (2 * signs - 1) * self.steps[..., None]
        return self.codes.astype(jnp.float32) * self.steps[..., None]


def coded(vectors: Float[np.ndarray, "*s d"], kind: str) -> Codes:
    """The codes of vectors; for binary ones, d must be divisible by 8."""
    if kind == "binary":
        steps = np.abs(vectors).mean(-1)
        return Codes(np.packbits(vectors > 0, axis=-1), steps)
    steps = np.abs(vectors).max(-1) / 127
    scaled = vectors / np.where(steps > 0, steps, 1)[..., None]
    return Codes(np.rint(scaled).astype(np.int8), steps)
