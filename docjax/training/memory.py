"""Memory: whether the largest micro-batch fits, and what a CPU does with freed memory."""

import contextlib
import ctypes
import os
import platform
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from docjax.encoders import freezing
from docjax.errors import UserError
from docjax.training.gradient_cache import GradientCache
from docjax.types import DOCUMENT, Microbatch

M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8  # names in glibc's malloc.h


def check(cache: GradientCache, segment: Any, microbatch: int, width: int) -> None:
    """Compiles the backward pass of `microbatch` segments of `width` tokens.

    Raises:
      UserError: if a device has less memory than it needs.
    """
    needed, limit = _needed(cache, segment, microbatch, width), available(cache.mesh)
    if needed > limit:
        raise UserError(
            f"a micro-batch of {microbatch:,} segments x {width} tokens needs "
            f"{needed / 2**30:.1f} GiB and does not fit in memory ({limit / 2**30:.1f} "
            "GiB a device): lower --config.microbatch"
        )


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Turns the runtime's error of a full memory into a UserError."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        line = str(error).splitlines()[0]
        raise UserError(
            f"a step does not fit in memory ({line}): lower --config.microbatch, or "
            "--config.batch"
        ) from None


def keep_freed() -> None:
    """Lets this process keep the memory it frees, if it computes on a Linux CPU.

    XLA allocates the temporary arrays of every call anew. glibc gives them back to the
    system each time, and asking for them again is a quarter of a step's time.
    """
    if jax.default_backend() == "cpu" and platform.libc_ver()[0] == "glibc":
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, -1)
        mallopt(M_ARENA_MAX, 1)


def available(mesh: jax.sharding.Mesh) -> int:
    """Bytes of memory that one device may take."""
    device = mesh.local_devices[0]
    stats = device.memory_stats() or {}
    if "bytes_limit" in stats:
        return stats["bytes_limit"]
    host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return host // len(mesh.local_devices)


def _needed(cache: GradientCache, segment: Any, microbatch: int, width: int) -> int:
    cut, all_ = (NamedSharding(cache.mesh, spec) for spec in (P("data"), P()))

    def shape(dimensions, dtype, sharding=cut):
        return jax.ShapeDtypeStruct(dimensions, dtype, sharding=sharding)

    batch = Microbatch(
        shape((microbatch, width), jnp.int32),
        shape((microbatch,), jnp.int32),
        shape((microbatch, 2), jnp.int32),
    )
    tower = cache.encoder.tower(DOCUMENT)
    segment = cache._of_tower(segment, tower)
    trained, frozen = (
        part.get("segment", {})
        for part in freezing.divided({"segment": segment}, cache.encoder.frozen)
    )
    vectors = jax.eval_shape(
        lambda s, b: cache.encoder.apply(
            {"params": {"segment": s}}, *b, None, tower, method="segments"
        ),
        segment,
        batch,
    )
    compiled = GradientCache._pull_back.lower(
        cache,
        jax.tree.map(lambda a: shape((cache.mesh.size, *a.shape), a.dtype), trained),
        jax.tree.map(lambda a: shape(a.shape, a.dtype, all_), trained),
        jax.tree.map(lambda a: shape(a.shape, a.dtype, all_), frozen),
        shape(vectors.shape, vectors.dtype),
        batch,
        jnp.int32(0),
        jax.random.key(0),
        tower,
    ).compile()
    stats = compiled.memory_analysis()
    whole = stats.argument_size_in_bytes + stats.output_size_in_bytes
    return whole + stats.temp_size_in_bytes - stats.alias_size_in_bytes
