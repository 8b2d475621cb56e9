"""What ends a run before its last step: a signal, a callback, or a loss that is not
finite."""

import collections
import signal
import threading

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

AHEAD = 2  # steps that may wait on the device before the loop waits for the oldest
EVERY = 8  # steps between two exchanges of the stop signal among processes


class Stopped(Exception):
    """SIGTERM came; everything is saved and the same command continues the run."""


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


class Stop:
    """Whether SIGTERM reached any process during training."""

    def __init__(self) -> None:
        self._came = False
        self._main = threading.current_thread() is threading.main_thread()
        if self._main:  # only the main thread may handle signals
            self._before = signal.signal(signal.SIGTERM, self._handle)

    def restore(self) -> None:
        """Restores the earlier handler of SIGTERM, and gives it a signal that came."""
        if self._main:
            signal.signal(signal.SIGTERM, self._before)
            if self._came:
                signal.raise_signal(signal.SIGTERM)

    def _handle(self, *_) -> None:
        self._came = True

    def asked(self, step: int, failed: bool, last: bool) -> tuple[bool, bool]:
        """Whether to stop, and whether a callback of any process `failed`; several
        processes agree on this every EVERY steps, and at the last one."""
        if jax.process_count() > 1 and step % EVERY and not last:
            return False, False
        return anywhere(self._came or failed, failed)


def anywhere(*facts: bool) -> tuple[bool, ...]:
    """Whether each fact is true in any process, which all processes learn."""
    if jax.process_count() == 1:
        return facts
    return tuple(
        multihost_utils.process_allgather(np.array(facts)).any(axis=0).tolist()
    )
