"""One training step: state, batch and key to the next state and metrics."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from docjax.training.gradient_cache import GradientCache, Metrics
from docjax.types import Batch


class State(NamedTuple):
    step: jax.Array  # [] steps taken
    params: Any  # nested dict of arrays
    optimizer: Any


def initial_state(
    params: Any, optimizer: optax.GradientTransformation, frozen: bool = False
) -> State:
    """The state before the first step; a `frozen` segment encoder is not updated."""
    trained = {name: params[name] for name in params if not frozen or name != "segment"}
    return State(jnp.zeros([], jnp.int32), params, optimizer.init(trained))


def make_step(
    cache: GradientCache, optimizer: optax.GradientTransformation
) -> Callable[[State, Batch, jax.Array], tuple[State, Metrics]]:
    """The step: gradient of the whole batch, then one update.

    The key is folded with the step number, so that a resumed run replays the same
    dropout.
    """

    @functools.partial(jax.jit, donate_argnums=0)
    def update(state: State, gradients: Any) -> tuple[State, jax.Array]:
        trained = {name: state.params[name] for name in gradients}
        updates, moments = optimizer.update(gradients, state.optimizer, trained)
        params = state.params | optax.apply_updates(trained, updates)
        norm = optax.tree.norm(gradients)
        return State(state.step + 1, params, moments), norm

    def step(state: State, batch: Batch, key: jax.Array) -> tuple[State, Metrics]:
        key = jax.random.fold_in(key, state.step)
        gradients, metrics = cache.gradient(state.params, batch, key)
        state, norm = update(state, gradients)
        return state, metrics | {"grad_norm": norm}

    return step
