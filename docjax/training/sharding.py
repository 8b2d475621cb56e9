"""Where arrays live: one mesh with the axis `data`, batches cut on it."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from absl import logging
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from docjax.config import UserError
from docjax.types import Batch, Microbatch


def mesh() -> Mesh:
    """All devices of all processes along the axis `data`."""
    return jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))


def use_cores(replicas: int) -> None:
    """Makes a CPU several devices, a core each at most, that divide `replicas`.

    To be called before jax is used; a number that is set already stays.
    """
    if replicas > 1 and jax.config.jax_num_cpu_devices < 1:
        import joblib  # takes a while, and few need it

        numbers = range(1, joblib.cpu_count() + 1)
        number = max(n for n in numbers if replicas % n == 0)
        jax.config.update("jax_num_cpu_devices", number)


def check_divides(mesh: Mesh, batch: int, microbatch: int) -> None:
    """Raises UserError if the devices cannot share a batch evenly."""
    for name, size in (("batch", batch), ("microbatch", microbatch)):
        if size < 1 or size % mesh.size:
            raise UserError(
                f"{name} {size} does not divide over {mesh.size} devices: "
                f"set --config.{name} to a multiple of {mesh.size}"
            )


def check_replicas(mesh: Mesh, replicas: int) -> None:
    """Raises UserError if the devices cannot share them; says if they are too few."""
    if replicas > 1 and replicas % mesh.size:
        raise UserError(
            f"objective.replicas {replicas} does not divide over {mesh.size} devices: "
            f"set --config.objective.replicas to a multiple of {mesh.size}, or to 1"
        )
    if replicas < mesh.size:
        logging.warning(
            "objective.replicas is 1: all %d devices do the same work", mesh.size
        )


def replicate(tree: Any, mesh: Mesh) -> Any:
    """The same arrays on every device."""
    return jax.tree.map(lambda array: _put(array, mesh, P()), tree)


def cut(tree: Any, mesh: Mesh) -> Any:
    """Arrays with their first axis cut over `data`."""
    return jax.tree.map(lambda array: _put(array, mesh, P("data")), tree)


def abstract(mesh: Mesh) -> Callable[[jax.Array], jax.ShapeDtypeStruct]:
    """From an array to the shape of one on every device."""
    everywhere = NamedSharding(mesh, P())
    return lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=everywhere)


def put_batch(batch: Batch, mesh: Mesh) -> Batch:
    """A batch on the devices: segments and documents cut over `data`.

    Every process holds the whole batch in memory and puts its own part.
    """
    cut = lambda array, spec: None if array is None else _put(array, mesh, spec)
    return Batch(
        microbatches=tuple(
            Microbatch(cut(m.tokens, P("data")), cut(m.lengths, P("data")))
            for m in batch.microbatches
        ),
        rows=cut(batch.rows, P(None, "data")),
        lengths=cut(batch.lengths, P(None, "data")),
        adjacency=cut(batch.adjacency, P(None, "data")),
        edges=cut(batch.edges, P(None, "data")),
        labels=cut(batch.labels, P("data")),
        vectors=cut(batch.vectors, P(None, "data")),
    )


def _put(array: Any, mesh: Mesh, spec: P) -> jax.Array:
    array = np.asarray(array)
    sharding = NamedSharding(mesh, spec)
    return jax.make_array_from_callback(
        array.shape, sharding, lambda index: array[index]
    )
