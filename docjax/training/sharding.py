"""Where arrays live: one mesh with the axis `data`, which batches are split over."""

import functools
import logging
import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from docjax.errors import UserError
from docjax.types import Batch

logger = logging.getLogger(__name__)


def mesh() -> Mesh:
    """All devices of all processes along the axis `data`."""
    return jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))


def use_cores(replicas: Any) -> None:
    """Splits the CPU into devices, as many as divide `replicas` and have a core each.

    Call `use_cores` before JAX is used. A user's own number of devices stays.
    The objective reports an invalid `replicas`.
    """
    is_set = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    several = isinstance(replicas, int) and replicas > 1
    if not several or is_set or jax.config.jax_num_cpu_devices > 0:
        return
    number = max(n for n in range(1, _cores() + 1) if replicas % n == 0)
    logger.info("objective.replicas %d: the CPU is %d devices", replicas, number)
    jax.config.update("jax_num_cpu_devices", number)


def _cores() -> int:
    """The CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_divides(mesh: Mesh, batch: int, microbatch: int) -> None:
    """Raises UserError if the devices cannot share a batch evenly."""
    for name, size in (("batch", batch), ("microbatch", microbatch)):
        if size < 1 or size % mesh.size:
            raise UserError(
                f"{name} {size} does not divide over {mesh.size} devices: "
                f"set --config.{name} to a multiple of {mesh.size}"
            )


def check_replicas(mesh: Mesh, replicas: int) -> None:
    """Raises UserError if the devices cannot share the replicas; warns of 1 replica."""
    if replicas > 1 and replicas % mesh.size:
        raise UserError(
            f"objective.replicas {replicas} does not divide over {mesh.size} devices: "
            f"set --config.objective.replicas to a multiple of {mesh.size}, or to 1"
        )
    if replicas == 1 and mesh.size > 1:
        logger.warning(
            "objective.replicas is 1: all %d devices do the same work; a multiple of "
            "%d shares the work",
            mesh.size,
            mesh.size,
        )


def replicate(tree: Any, mesh: Mesh) -> Any:
    """The same arrays on every device."""
    return jax.tree.map(lambda array: _put(array, mesh, P()), tree)


def cut(tree: Any, mesh: Mesh) -> Any:
    """Arrays whose first axis is split over `data`."""
    return jax.tree.map(lambda array: _put(array, mesh, P("data")), tree)


def abstract(mesh: Mesh, *axes: str | None) -> Callable[[Any], Any]:
    """A function from arrays to their shapes, split over `axes`; without: copied."""
    sharding = NamedSharding(mesh, P(*axes))

    def shape(a: Any) -> jax.ShapeDtypeStruct:
        # Another weak type would be another program. Arrays of NumPy have none.
        weak = getattr(a, "weak_type", False)
        return jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding, weak_type=weak)

    return functools.partial(jax.tree.map, shape)


def put_batch(batch: Batch, mesh: Mesh) -> Batch:
    """A batch on the devices: segments and documents split over `data`.

    Every process holds the whole batch in memory and transfers its own part.
    """
    put = lambda tree, spec: jax.tree.map(lambda array: _put(array, mesh, spec), tree)
    specs = dict.fromkeys(("microbatches", "targets", "masked"), P("data"))
    columns = "rows", "lengths", "places", "graphs", "vectors"
    specs |= dict.fromkeys(columns, P(None, "data")) | {"answers": P()}
    parts = {name: put(getattr(batch, name), spec) for name, spec in specs.items()}
    return batch._replace(**parts, cut=None)


def _put(array: Any, mesh: Mesh, spec: P) -> jax.Array:
    array = np.asarray(array)
    sharding = NamedSharding(mesh, spec)
    return jax.make_array_from_callback(
        array.shape, sharding, lambda index: array[index]
    )
