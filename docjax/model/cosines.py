"""Cosines of vectors, as arrays of NumPy."""

import numpy as np
from jaxtyping import Float


def cosines(
    a: Float[np.ndarray, "q d"], b: Float[np.ndarray, "c d"]
) -> Float[np.ndarray, "q c"]:
    """The cosine of each vector of `a` with each vector of `b`; 0 for a zero vector."""
    return np.clip(unit(a) @ unit(b).T, -1, 1)


def unit(vectors: Float[np.ndarray, "... d"]) -> Float[np.ndarray, "... d"]:
    """The vectors scaled to length 1; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)
