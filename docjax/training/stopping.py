"""What ends a run before its last step: a signal, a callback, or a loss that is not
finite."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from docjax.progress import signals

AHEAD = 2  # steps that may wait on the device before the loop waits for the oldest
EVERY = 8  # steps between two exchanges of the stop signal among processes


class NotFinite(Exception):
    """The loss or the gradient is not a number."""


class Finite:
    """Watches for a loss that is not finite, without waiting for the device.

    The device keeps the number of the first bad step. At most AHEAD steps wait on the
    device: a CPU of several devices can hang if more calls wait, and memory holds the
    batches of all waiting steps.
    """

    def __init__(self) -> None:
        self._first = jnp.int32(0)
        self._under_way: collections.deque[jax.Array] = collections.deque()

    def add(self, step: int, metrics: dict[str, jax.Array]) -> None:
        """Notes the metrics of a step that the device computes."""
        values = metrics["loss"], metrics["grad_norm"]
        self._first = _first_bad(self._first, jnp.int32(step), *values)
        self._under_way.append(self._first)
        if len(self._under_way) > AHEAD:
            self._under_way.popleft().block_until_ready()

    def bad_step(self) -> int:
        """The first step whose loss or gradient was not finite; 0 if there is none."""
        return int(self._first)


@jax.jit
def _first_bad(first: jax.Array, step: jax.Array, *values: jax.Array) -> jax.Array:
    good = jnp.stack([jnp.isfinite(value) for value in values]).all()
    return jnp.where((first == 0) & ~good, step, first)


def asked(step: int, failed: bool, last: bool) -> tuple[bool, bool]:
    """Whether to stop, and whether a callback of any process `failed`; several processes
    agree on this every EVERY steps, and at the last one."""
    if jax.process_count() > 1 and step % EVERY and not last:
        return False, False
    return anywhere(signals.came() or failed, failed)


def anywhere(*facts: bool) -> tuple[bool, ...]:
    """Whether each fact is true in any process, which all processes learn."""
    if jax.process_count() == 1:
        return facts
    return tuple(
        multihost_utils.process_allgather(np.array(facts)).any(axis=0).tolist()
    )
