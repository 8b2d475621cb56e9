"""An encoder that follows the trained one: a moving average of its parameters.

He et al., 2020, section 3.2 (MoCo). `gradient_cache.py` reads view 0 with the trained
parameters, and the other views with the average.
"""

import functools
from typing import Any, NamedTuple

import jax

Params = Any


class Following(NamedTuple):
    """What `State.memory` holds for an objective with `momentum`."""

    params: Params  # the moving average of all parameters
    objective: Any  # the objective's own memory


@functools.partial(jax.jit, static_argnums=2)
def followed(memory: Following, params: Params, momentum: float) -> Following:
    """The memory with momentum * average + (1 - momentum) * params."""
    average = lambda old, new: momentum * old + (1 - momentum) * new
    return memory._replace(params=jax.tree.map(average, memory.params, params))
