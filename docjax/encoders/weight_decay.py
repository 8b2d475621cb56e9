"""Which parameters weight decay makes smaller, in training and in a probe."""

from typing import Any

import jax

COMPONENTS = "components"  # what `FromMean` calls a matrix that stays as it is


def decays(params: Any) -> Any:
    """True for each kernel and table; False for biases, layer norms and COMPONENTS."""

    def decays_at(path: tuple, array: Any) -> bool:
        return array.ndim > 1 and path[-1].key != COMPONENTS

    return jax.tree_util.tree_map_with_path(decays_at, params)
