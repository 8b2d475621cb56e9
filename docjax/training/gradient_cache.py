"""The exact gradient of a large batch in the memory of one micro-batch.

The loss depends on the segment encoder only through the segment vectors. So all
micro-batches are encoded without keeping activations; the document encoder and the
objective give the loss and its gradient with respect to the segment vectors; and
each micro-batch is encoded again to pull that gradient back (Gao et al., 2021).

Dropout keys belong to segments: `fold_in(key, row)` with the row's number in the
batch. Both encodings, every micro-batch size and every device layout see the same
masks.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from docjax.data.segment_batches import round_up
from docjax.encoders.document import DocumentEncoder
from docjax.types import Batch, Microbatch

BLOCK = 64  # documents of a device that the light pass reads at once, at least
Params = Any
Metrics = dict[str, jax.Array]


@dataclasses.dataclass(frozen=True, eq=False)
class GradientCache:
    """`gradient(params, batch, key)` of an objective over an encoder on a mesh.

    queries: the views that are encoded as queries.
    """

    encoder: DocumentEncoder
    objective: Callable[..., tuple[jax.Array, Metrics]]
    mesh: Mesh
    queries: tuple[int, ...] = ()

    def gradient(
        self, params: Params, batch: Batch, key: jax.Array | None
    ) -> tuple[Params, Metrics]:
        """The gradient with respect to `params`, and metrics with the loss.

        A batch of segment vectors has none with respect to the segment encoder. `key`
        None turns dropout off.
        """
        segment = params["segment"]
        keys = (None, None) if key is None else _split(key)
        rest = {name: part for name, part in params.items() if name != "segment"}
        light = batch._replace(microbatches=(), vectors=None)
        if batch.vectors is not None:
            return self._documents(rest, batch.vectors, light, keys[1])
        vectors = self._vectors(segment, batch.microbatches, keys[0])
        gradients, cotangents, metrics = self._objective(rest, vectors, light, keys[1])
        total = self._zeros(segment)
        for i, microbatch in enumerate(batch.microbatches):
            cotangent = _read(cotangents, i)
            total = self._pull_back(
                total, segment, cotangent, microbatch, jnp.int32(i), keys[0]
            )
        return {"segment": self._sum(total)} | gradients, metrics

    def _vectors(self, segment, microbatches, key):
        """All segment vectors, [micro-batches n d]."""
        buffer = None
        for i, microbatch in enumerate(microbatches):
            vectors = self._encode(segment, microbatch, jnp.int32(i), key)
            if buffer is None:
                shape = (round_up(len(microbatches)), *vectors.shape)
                buffer = _zeros(shape, NamedSharding(self.mesh, P(None, "data")))
            buffer = _write(buffer, vectors, i)
        return buffer

    def _segments(self, segment, microbatch: Microbatch, row, key):
        """Vectors of a micro-batch whose first row is row `row` of the batch."""
        if key is not None:
            rows = row + jnp.arange(len(microbatch.lengths))
            key = jax.vmap(functools.partial(jax.random.fold_in, key))(rows)
        return self.encoder.apply(
            {"params": {"segment": segment}}, *microbatch, key, method="segments"
        )

    def _first_row(self, microbatch, index):
        """Inside `shard_map`: the first row of this device's part."""
        part = index * self.mesh.size + jax.lax.axis_index("data")
        return part * len(microbatch.lengths)

    @functools.partial(jax.jit, static_argnums=0)
    def _encode(self, segment, microbatch, index, key):
        @self._per_device(P(), P("data"), P(), P(), out=P("data"))
        def encode(segment, microbatch, index, key):
            row = self._first_row(microbatch, index)
            return self._segments(segment, microbatch, row, key)

        return encode(segment, microbatch, index, key)

    @functools.partial(jax.jit, static_argnums=0)
    def _documents(self, rest, vectors, batch, key):
        """The light part alone, for vectors of a frozen segment encoder."""
        gradient = jax.value_and_grad(self.loss, has_aux=True)
        (_, metrics), gradients = gradient(rest, vectors, batch, key)
        return gradients, metrics

    @functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
    def _objective(self, rest, vectors, batch, key):
        """The light part: gradients of its parameters and of the segment vectors."""
        gradient = jax.value_and_grad(self.loss, argnums=(0, 1), has_aux=True)
        (_, metrics), (gradients, cotangents) = gradient(rest, vectors, batch, key)
        cotangents = jax.lax.with_sharding_constraint(
            cotangents, NamedSharding(self.mesh, P(None, "data"))
        )
        return gradients, cotangents, metrics

    def loss(self, params, vectors, batch, key):
        """The objective from segment vectors [micro-batches n d]: (loss, metrics)."""
        blocks = _blocks(batch.rows.shape[1], self.mesh.size)
        deal = functools.partial(_deal, blocks=blocks)
        flat = vectors.reshape(-1, vectors.shape[-1])
        gathered = jax.lax.with_sharding_constraint(
            flat[deal(batch.rows)], NamedSharding(self.mesh, P(None, None, "data"))
        )
        graphs = jax.tree.map(deal, (batch.lengths, batch.adjacency, batch.edges))
        # One block's activations at a time, in the backward pass too.
        views = jax.checkpoint(
            functools.partial(self._views, params), prevent_cse=False
        )
        documents = jax.lax.map(lambda block: views(*block), (gathered, *graphs))
        return self._loss(params, _undeal(documents), batch.labels, key)

    def _views(self, params, *light):
        return self.encoder.apply(
            {"params": params}, *light, self.queries, method="views"
        )

    def _loss(self, params, documents, labels, key):
        outputs = self.encoder.apply(
            {"params": params}, documents, key, method="outputs"
        )
        loss, metrics = self.objective(outputs, labels)
        return loss, metrics | {"loss": loss}

    @functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
    def _pull_back(self, total, segment, cotangent, microbatch, index, key):
        """Adds one micro-batch's gradient to each device's own sum."""

        @self._per_device(P("data"), P(), P("data"), P("data"), P(), P(), out=P("data"))
        def pull(total, segment, cotangent, microbatch, index, key):
            row = self._first_row(microbatch, index)
            _, vjp = jax.vjp(
                lambda segment: self._segments(segment, microbatch, row, key), segment
            )
            return jax.tree.map(lambda t, g: t + g[None], total, vjp(cotangent)[0])

        return pull(total, segment, cotangent, microbatch, index, key)

    @functools.partial(jax.jit, static_argnums=0)
    def _sum(self, total):
        """One sum over the devices, at the end."""
        return jax.tree.map(
            lambda array: jax.lax.with_sharding_constraint(
                array.sum(0), NamedSharding(self.mesh, P())
            ),
            total,
        )

    def _zeros(self, segment):
        return jax.tree.map(
            lambda array: _zeros(
                (self.mesh.size, *array.shape), NamedSharding(self.mesh, P("data"))
            ),
            segment,
        )

    def _per_device(self, *inputs, out):
        # No check of what varies by device: erf has no rule for it in jax 0.12.
        return lambda function: jax.shard_map(
            function, mesh=self.mesh, in_specs=inputs, out_specs=out, check_vma=False
        )


def plain_gradient(
    cache: GradientCache, params: Params, batch: Batch, key: jax.Array | None
) -> tuple[Params, Metrics]:
    """The same gradient with all activations kept: what the cache must equal."""
    keys = (None, None) if key is None else _split(key)

    def loss(params):
        vectors, row = [], 0
        for microbatch in batch.microbatches:
            vectors.append(cache._segments(params["segment"], microbatch, row, keys[0]))
            row += len(microbatch.lengths)
        gathered = jnp.concatenate(vectors)[batch.rows]
        documents = cache._views(
            params, gathered, batch.lengths, batch.adjacency, batch.edges
        )
        return cache._loss(params, documents, batch.labels, keys[1])

    (_, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(params)
    return gradient, metrics


def _blocks(documents: int, devices: int) -> int:
    """The number of blocks that the light pass takes the documents of a batch in."""
    local = documents // devices
    most = max(local // BLOCK, 1)
    return max(count for count in range(1, most + 1) if local % count == 0)


def _deal(array, blocks):
    """[v b ...] to [blocks v b/blocks ...], dealt out in turn.

    So every block has some documents of each device.
    """
    shape = (len(array), -1, blocks, *array.shape[2:])
    return jnp.moveaxis(array.reshape(shape), 2, 0)


def _undeal(array):
    """The other way."""
    _, v, _, *rest = array.shape
    return jnp.moveaxis(array, 0, 2).reshape(v, -1, *rest)


def _split(key):
    """Keys of the segments and of the documents."""
    return jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)


# Apart from the encoder, so that it is compiled for the widths of micro-batches and
# not once more for every number of them.
@functools.partial(jax.jit, donate_argnums=0)
def _write(buffer, vectors, index):
    return jax.lax.dynamic_update_index_in_dim(buffer, vectors, index, 0)


@jax.jit
def _read(buffer, index):
    return jax.lax.dynamic_index_in_dim(buffer, index, 0, keepdims=False)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _zeros(shape, sharding):
    return jax.lax.with_sharding_constraint(jnp.zeros(shape, jnp.float32), sharding)
