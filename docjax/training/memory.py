"""Memory: whether a step fits, and whether a CPU process keeps freed memory."""

import contextlib
import ctypes
import dataclasses
import math
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from docjax.errors import UserError
from docjax.training import programs
from docjax.training.gradient_cache import GradientCache
from docjax.types import Microbatch, State

LOWER = "lower --config.microbatch"
SMALLER = "train a smaller encoder, or use devices with more memory"
TOKENS = 2**31  # a micro-batch on one device must have fewer tokens
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8  # names in glibc's malloc.h


def check(
    cache: GradientCache,
    state: State,
    microbatch: int,
    width: int,
    segments: int,
    answers: int | None = None,
) -> None:
    """Compiles the passes of `microbatch` segments of `width` tokens with a gradient.

    The first step calls the compiled programs and does not compile them again.

    `state` may have shapes alone. A batch has `segments` segments, and a segment of
    `width` tokens has `answers` masked ones, or None without masking.

    Raises:
      UserError: if a device has less memory than a step needs.
    """
    if microbatch * width // cache.mesh.size >= TOKENS:  # more than a program can index
        raise UserError(
            f"a step does not fit in memory: a micro-batch of {microbatch:,} segments "
            f"x {width} tokens has 2^31 tokens per device or more: {LOWER}"
        )
    shape = programs.microbatch_shape(microbatch, width)
    passes = pass_bytes(cache, state, shape, answers)
    held, limit = held_bytes(cache, state, shape, segments), available(cache.mesh)
    if passes + held > limit:
        mend = SMALLER if held > limit else LOWER
        raise UserError(
            f"a step does not fit in memory ({_gib(limit)} per device): {_gib(passes)} "
            f"for a micro-batch of {microbatch:,} segments x {width} tokens, "
            f"{_gib(held)} for parameters, optimizer and segment vectors: {mend}"
        )


def check_vectors(
    mesh: jax.sharding.Mesh,
    batch: int,
    views: int,
    longest: int,
    width: int,
    graph: int = 0,
) -> None:
    """Raises UserError if the vectors of a batch's segments do not fit on a device.

    Every view has room for the longest one, `longest` segments of `width` numbers, whose
    graph takes `graph` bytes.
    """
    each = views * -(-batch // mesh.size)
    needed, limit = each * (longest * width * 4 + graph), available(mesh)
    if needed > limit:
        # A graph grows at most with the square of the segments.
        most = int(longest * (limit / needed) ** (0.5 if graph else 1))
        raise UserError(
            f"a step does not fit in memory ({_gib(available(mesh))} per device): the "
            f"longest document has {longest:,} segments in a view, so the segment "
            f"vectors {'and graphs ' if graph else ''}of a batch of {batch} with it take "
            f"{_gib(needed)}: set "
            f"--config.limits.training_units={max(most, 1)}, so that training reads less of a "
            "document, or lower --config.batch"
        )


def pass_bytes(
    cache: GradientCache, state: State, microbatch: Microbatch, answers: int | None
) -> int:
    """Bytes that the largest pass of a micro-batch with a gradient takes, compiled."""
    given, traced = (cache, state.params, microbatch), []
    if cache.objective is not None and cache.keep:
        traced += [programs.encode(*given), programs.pull_kept(*given)]
    elif cache.objective is not None:
        traced.append(programs.pull_back(*given))
    if answers is not None:
        traced.append(programs.pull_tokens(*given, answers))
    return max(program_bytes(program.lower().compile()) for program in traced)


def held_bytes(
    cache: GradientCache, state: State, microbatch: Microbatch, segments: int
) -> int:
    """Bytes that a device holds beside the arrays of the backward pass.

    These are the optimizer's state, the objective's memory before and after the step,
    and with their gradient the vectors of `segments` segments and all parameters but
    those of the segment encoder, which belong to the backward pass.
    """
    segment = programs.segment_params(cache, state.params)
    rest = tree_bytes(state.params) - tree_bytes(segment)
    vectors = programs.vector_shape(cache, state.params, microbatch)
    row = tree_bytes(vectors) // len(microbatch.lengths)
    per_device = -(-segments // cache.mesh.size)
    state_bytes = tree_bytes(state.optimizer) + 2 * tree_bytes(state.memory)
    return state_bytes + 2 * rest + 2 * per_device * row


def activation_bytes(cache: GradientCache, state: State, microbatch: Microbatch) -> int:
    """Bytes that a device keeps of a micro-batch, if activations are kept."""
    keeping = cache if cache.keep else dataclasses.replace(cache, keep=1)
    _, activations = programs.encode(keeping, state.params, microbatch).out_info
    return tree_bytes(activations) // cache.mesh.size


def most_kept(
    cache: GradientCache, state: State, microbatch: int, width: int, segments: int
) -> int:
    """The most micro-batches whose activations a device should keep.

    0, if those of an average batch take more than a quarter of what parameters,
    gradients, optimizer and vectors leave of a device. Else those of a larger batch may
    take a half; the passes and other programs need the rest. Arguments as of `check`.
    """
    if cache.objective is None or microbatch * width // cache.mesh.size >= TOKENS:
        return 0
    shape = programs.microbatch_shape(microbatch, width)
    # The parameters, as part of what is kept, their gradient, and its sum.
    heavy = 4 * tree_bytes(programs.segment_params(cache, state.params))
    held = held_bytes(cache, state, shape, segments)
    free = available(cache.mesh) - held - heavy
    if jax.default_backend() == "cpu":  # its processes may share a machine
        free //= jax.process_count()
    each = activation_bytes(cache, state, shape)
    average = -(-segments // microbatch)
    return free // (2 * each) if 4 * average * each <= free else 0


def tree_bytes(tree: Any) -> int:
    """The bytes of all arrays, or of all array shapes, in a tree."""
    return sum(math.prod(a.shape) * a.dtype.itemsize for a in jax.tree.leaves(tree))


def program_bytes(compiled: jax.stages.Compiled) -> int:
    """The bytes that a program takes on a device: arguments, results, temporaries."""
    stats = compiled.memory_analysis()
    whole = stats.argument_size_in_bytes + stats.output_size_in_bytes
    return whole + stats.temp_size_in_bytes - stats.alias_size_in_bytes


@contextlib.contextmanager
def out_of_memory_as_user_error() -> Iterator[None]:
    """Turns the runtime's out-of-memory error into a UserError."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        line = str(error).splitlines()[0]
        raise UserError(
            f"a step does not fit in memory ({line}): lower --config.microbatch or "
            "--config.batch"
        ) from None


def keep_freed() -> None:
    """Makes this process keep the memory it frees, if it computes on a Linux CPU.

    XLA allocates the temporary arrays anew in every call, and glibc returns the freed
    memory to the system each time. Allocating it again takes a quarter of a step
    (benchmarks/gradient_cache.py).
    """
    if jax.default_backend() == "cpu" and platform.libc_ver()[0] == "glibc":
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, -1)
        mallopt(M_ARENA_MAX, 1)


def available(mesh: jax.sharding.Mesh) -> int:
    """The bytes of memory that one device may use."""
    device = mesh.local_devices[0]
    stats = device.memory_stats() or {}
    if "bytes_limit" in stats:
        return stats["bytes_limit"]
    return host_memory() // len(mesh.local_devices)


def host_memory(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """The bytes of memory that the machine or its container lets this process use."""
    host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # version 2, and 1
        with contextlib.suppress(OSError, ValueError):  # "max" is no limit
            host = min(host, int((groups / name).read_text()))
    return host


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
