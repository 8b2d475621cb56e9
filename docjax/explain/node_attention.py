"""Reduces the attention weights of all graph layers to the matrix that a page shows.

A row is a receiver and a column is a sender. Node 0 is the document and node i is its
i-th segment. The weights come from `DocumentModel.explain`.
"""

import jax
import numpy as np
from jaxtyping import Float


def node_attention(
    weights: Float[np.ndarray | jax.Array, "layers h nodes nodes"],
) -> Float[np.ndarray, "nodes nodes"]:
    """The last layer's weights, averaged over the heads (Fig. 7 of graph-roberta)."""
    return np.asarray(weights[-1], np.float32).mean(axis=0)
