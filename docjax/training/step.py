"""One training step: state, batch and key to the next state and metrics."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from docjax.encoders import freezing
from docjax.training.gradient_cache import GradientCache, Metrics
from docjax.types import Batch, State


def initial_state(
    params: Any,
    optimizer: optax.GradientTransformation,
    frozen: str = "",
    memory: Any = (),
) -> State:
    """The state before the first step; `frozen` is as in `freezing.divided`."""
    trained, _ = freezing.divided(params, frozen)
    return State(jnp.zeros([], jnp.int32), params, optimizer.init(trained), memory)


def make_step(
    cache: GradientCache, optimizer: optax.GradientTransformation
) -> Callable[[State, Batch, jax.Array], tuple[State, Metrics]]:
    """The step: gradient of the whole batch, then one update.

    The key is folded with the step number: a resumed run replays the same dropout.
    """

    @functools.partial(jax.jit, donate_argnums=0)
    def update(state: State, gradients: Any, memory: Any) -> tuple[State, jax.Array]:
        trained, frozen = freezing.divided(state.params, cache.encoder.frozen)
        updates, moments = optimizer.update(gradients, state.optimizer, trained)
        params = freezing.joined(optax.apply_updates(trained, updates), frozen)
        norm = optax.tree.norm(gradients)
        return State(state.step + 1, params, moments, memory), norm

    def step(state: State, batch: Batch, key: jax.Array) -> tuple[State, Metrics]:
        key = jax.random.fold_in(key, state.step)
        gradients, metrics, memory = cache.gradient(
            state.params, batch, key, state.memory
        )
        state, norm = update(state._replace(memory=()), gradients, memory)
        return state, metrics | {"grad_norm": norm}

    return step
