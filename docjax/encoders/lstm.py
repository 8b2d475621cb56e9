"""A bidirectional LSTM over chunks: its last states, and their gradient.

Flax has the cell and its parameters (`OptimizedLSTMCell`). Flax's `RNN` multiplies the
input of each step alone, and at each step adds to the gradient of the kernels. Here the
inputs of all steps are one product, the gradient of a kernel is one product after all
steps, and both directions take their steps together. `benchmarks/chunk_encoder.py`
measures this module; docs/log has other forms with their times.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from docjax.kernels import EXACT

GATES = "ifgo"
# Every gate is a tanh: the sigmoid of x is (1 + tanh(x / 2)) / 2, and with XLA's sigmoid
# the scan takes a third longer on a CPU. The parameters of a gate are scaled.
SCALES = (0.5, 0.5, 1.0, 0.5)
UNROLL = 4  # steps in one turn of the loop

Cell = Mapping[str, Mapping[str, Any]]


def last_states(
    rows: Float[Array, "n t d"], real: Bool[Array, "n t"], cells: tuple[Cell, Cell]
) -> Float[Array, "n f"]:
    """The last state forwards beside the last state backwards.

    `cells` are the parameters of both directions. A step that is not real changes no
    state, and its gradient is exactly 0. A row without real steps gives 0.
    """
    forwards, backwards = (_stacked(cell) for cell in cells)
    in_time = jnp.moveaxis(jnp.where(real[..., None], rows, 0), 1, 0)
    product = lambda x, w: jnp.einsum("tnd,dk->tnk", x, w, precision=EXACT)
    both = lambda name: jnp.stack([forwards[name], backwards[name]])
    last = _run(
        product(in_time, forwards["input"]),
        product(in_time[::-1], backwards["input"]),
        both("state"),
        both("bias")[:, None],
        jnp.stack([real.T, real.T[::-1]], axis=1)[..., None],
    )
    return jnp.concatenate([last[0], last[1]], axis=-1)


def _stacked(cell: Cell) -> dict[str, Array]:
    """The parameters of all gates side by side, each times its scale."""

    def stacked(letter: str, name: str) -> Array:
        gates = zip(GATES, SCALES, strict=True)
        parts = [cell[letter + gate][name] * scale for gate, scale in gates]
        return jnp.concatenate(parts, axis=-1)

    return {
        "input": stacked("i", "kernel"),
        "state": stacked("h", "kernel"),
        "bias": stacked("h", "bias"),
    }


@jax.custom_vjp
def _run(first, second, kernels, bias, real) -> Float[Array, "2 n h"]:
    """The states after all steps, from the inputs of both directions, [t n k] each, the
    kernels [2 h k] and biases [2 1 k], and which steps are real [t 2 n 1]."""
    return _forward(first, second, kernels, bias, real, keep=False)[0]


def _forward(first, second, kernels, bias, real, keep=True):
    """The states, and what the gradient needs of every step."""

    def step(carry, now):
        cell, state = carry
        inputs = jnp.stack(now[:2])
        gates = jnp.tanh(inputs + _product(state, kernels) + bias)
        new = _new_cell(gates, cell)
        after = (0.5 * gates[..., 3 * h :] + 0.5) * jnp.tanh(new)
        after = jnp.where(now[2], after, state)
        return (jnp.where(now[2], new, cell), after), (gates, *carry) if keep else None

    h = kernels.shape[1]
    zero = jnp.zeros_like(first, shape=(2, first.shape[1], h))
    steps = first, second, real
    (_, last), kept = jax.lax.scan(step, (zero, zero), steps, unroll=UNROLL)
    return last, (kept, kernels, real)


def _new_cell(gates: Float[Array, "2 n k"], cell: Float[Array, "2 n h"]) -> Array:
    i, f, g, _ = jnp.split(gates, 4, axis=-1)
    return (0.5 * f + 0.5) * cell + (0.5 * i + 0.5) * g


def _backward(kept, d_last):
    (gates, cells, states), kernels, real = kept

    def step(carry, now):
        d_cell, d_state = carry
        gates, cell, is_real = now
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        squashed = jnp.tanh(_new_cell(gates, cell))
        d_new = d_cell + d_state * (0.5 * o + 0.5) * (1 - squashed**2)
        d_gates = [
            0.5 * d_new * g,
            0.5 * d_new * cell,
            (0.5 * i + 0.5) * d_new,
            0.5 * d_state * squashed,
        ]
        d_inputs = jnp.concatenate(d_gates, axis=-1) * (1 - gates**2)
        d_inputs = jnp.where(is_real, d_inputs, 0)
        d_cell = jnp.where(is_real, (0.5 * f + 0.5) * d_new, d_cell)
        d_state = jnp.where(is_real, _product(d_inputs, transposed), d_state)
        return (d_cell, d_state), tuple(d_inputs)

    transposed = jnp.swapaxes(kernels, 1, 2)
    carry, steps = (jnp.zeros_like(d_last), d_last), (gates, cells, real)
    _, inputs = jax.lax.scan(step, carry, steps, reverse=True, unroll=UNROLL)
    by_states = lambda s, d: jnp.einsum("tnh,tnk->hk", s, d, precision=EXACT)
    d_kernels = [by_states(states[:, i], d) for i, d in enumerate(inputs)]
    d_bias = [d.sum((0, 1))[None] for d in inputs]
    return *inputs, jnp.stack(d_kernels), jnp.stack(d_bias), None


_run.defvjp(_forward, _backward)


def _product(states, kernels) -> Float[Array, "2 n o"]:
    """The product of each direction with its own kernel."""
    return jnp.einsum("dni,dio->dno", states, kernels, precision=EXACT)
