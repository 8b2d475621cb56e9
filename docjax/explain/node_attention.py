"""Attention weights of the graph layers, reduced to what a reader looks at.

Row = receiver, column = sender; node 0 is the document, node i its i-th segment.
The weights themselves come from the model's `explain`.
"""

import jax
import numpy as np
from jaxtyping import Float


def node_attention(
    weights: Float[np.ndarray | jax.Array, "layers h nodes nodes"],
) -> Float[np.ndarray, "nodes nodes"]:
    """The last layer's weights, averaged over the heads (Fig. 7 of graph-roberta)."""
    return np.asarray(weights[-1], np.float32).mean(axis=0)
