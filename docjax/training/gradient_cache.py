"""The exact gradient of a large batch in the memory of one micro-batch.

The loss depends on the segment encoder only through the segment vectors. So there are
three passes (Gao et al., 2021). The first encodes all micro-batches. The second runs
the document encoder and the objective, and gives the loss and its gradient with respect
to the segment vectors. The third encodes each micro-batch again, pulls that gradient
back, and adds the gradient of the masked tokens' loss. The first pass can keep the
activations of some micro-batches, which the third pass does not encode again: with all
kept, the segment encoder does three quarters of the work.

An objective with `momentum` has a second encoder, which reads all views but the first
and gets no gradient (`momentum.py`). It counts as tower 1, the trained encoder as 0.

Dropout keys belong to segments: `fold_in(key, row)` with the row's number in the batch,
or, with several towers, among the rows of its tower. Both encodings, every micro-batch
size and every device layout see the same masks.

In annotations `microbatches` is their number in a batch, rounded up; `w` is the width of
a document's vector, and `o` that of what the objective reads.
"""

import collections
import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, Int, Key, Shaped

from docjax.data.microbatches import round_up
from docjax.encoders import freezing
from docjax.encoders.document import DocumentEncoder, without_segment
from docjax.training.momentum import Following, followed
from docjax.types import (
    DOCUMENT,
    Batch,
    Masked,
    Microbatch,
    ObjectiveWithMemory,
    Targets,
)

FIRST_OTHERS = slice(0, 1), slice(1, None)  # the first view, and the other views
BLOCK = 64  # the light pass reads at least BLOCK examples per device at once
Params = Any
Metrics = dict[str, Array]  # scalars
Number = int | Int[Array, ""]
DropoutKey = Key[Array, ""] | None  # None turns dropout off
Loss = Float[Array, ""]
TokenSums = Float[Array, "3"] | None  # the loss, right answers, and answers


class Keys(NamedTuple):
    """Dropout keys of segments, of documents and of segments with masked tokens."""

    segments: DropoutKey
    documents: DropoutKey
    tokens: DropoutKey

    @classmethod
    def of(cls, key: DropoutKey) -> "Keys":
        """Three keys from one key; without a key, None three times."""
        if key is None:
            return cls(None, None, None)
        return cls(*(jax.random.fold_in(key, number) for number in range(3)))


@dataclasses.dataclass(frozen=True, eq=False)
class GradientCache:
    """`gradient(params, batch, key)` of an objective over an encoder on a mesh."""

    encoder: DocumentEncoder
    objective: Callable[..., tuple[Loss, Metrics]] | None  # None: token loss alone
    mesh: Mesh
    kinds: tuple[str, ...]  # of the views, see `docjax.types.Views`
    token_weight: float = 0.0  # of the mean loss of masked tokens
    keep: int = 0  # the most micro-batches whose activations are kept for pass three

    @property
    def momentum(self) -> float | None:
        """That of the second encoder; None without a second encoder."""
        return getattr(self.objective, "momentum", None)

    @property
    def towers(self) -> tuple[int, ...]:
        """The tower that reads each view; () for a single encoder."""
        if self.momentum is not None:
            return tuple(min(view, 1) for view in range(len(self.kinds)))
        return self.encoder.towers(self.kinds)

    @property
    def tower(self) -> int | None:
        """The trained tower that reads documents; None for a single encoder."""
        return 0 if self.momentum is not None else self.encoder.tower(DOCUMENT)

    def gradient(
        self, params: Params, batch: Batch, key: DropoutKey, memory: Any = ()
    ) -> tuple[Params, Metrics, Any]:
        """The gradient of the trained parameters, metrics with the loss, and the
        objective's memory for the next batch; `memory` is that of earlier batches."""
        average, own = None, memory
        if self.momentum is not None:
            average, own = followed(memory, params, self.momentum)
        trained, frozen = freezing.divided(params, self.encoder.frozen)
        keys, kept = Keys.of(key), [None] * len(batch.microbatches)
        segment = trained.pop("segment", {}), frozen.get("segment", {})
        if self.objective is None:
            gradients = jax.tree.map(jnp.zeros_like, trained)
            cotangents, metrics = None, {"loss": jnp.zeros(())}
        else:
            vectors = batch.vectors
            if vectors is None:
                vectors, kept = self._vectors(segment, average, batch, keys.segments)
            second_pass = self.both_gradients if segment[0] else self.document_gradients
            inputs = vectors, light(batch), keys.documents, own
            gradients, cotangents, metrics, own = second_pass(
                trained, without_segment(frozen), *inputs, without_segment(average)
            )
        if segment[0]:
            inputs = segment, cotangents, kept, batch, keys
            of_segment, of_tokens = self._third_pass(*inputs)
            gradients = gradients | {"segment": of_segment}
            metrics = self.with_token_metrics(metrics, of_tokens)
        memory = own if average is None else Following(average, own)
        return gradients, metrics, memory

    def _vectors(
        self,
        segment: tuple[Params, Params],
        average: Params,
        batch: Batch,
        key: DropoutKey,
    ) -> tuple[Float[Array, "microbatches n d"], list[Any]]:
        """All segment vectors, and what is kept of each micro-batch."""
        buffer, kept = None, []
        for i, (microbatch, number, tower) in enumerate(self.microbatches(batch)):
            params = (self.of_tower(part, tower) for part in segment)
            follows = average is not None and tower
            if follows:
                parts = freezing.divided(average, self.encoder.frozen)
                params = (part.get("segment", {}) for part in parts)
            keep = i < self.keep and bool(segment[0]) and not follows
            inputs = microbatch, jnp.int32(number), key, tower, keep
            vectors, activations = self.encode(*params, *inputs)
            kept.append(activations)
            if buffer is None:
                shape = (round_up(len(batch.microbatches)), *vectors.shape)
                buffer = _zeros(shape, NamedSharding(self.mesh, P(None, "data")))
            buffer = _write(buffer, vectors, i)
        return buffer, kept

    def microbatches(
        self, batch: Batch
    ) -> Iterator[tuple[Microbatch, int, int | None]]:
        """Each micro-batch, its number among its tower's micro-batches, and the tower
        (None without towers)."""
        towers = batch.towers if self.towers else ()
        numbers: collections.Counter = collections.Counter()
        for microbatch, tower in itertools.zip_longest(batch.microbatches, towers):
            yield microbatch, numbers[tower], tower
            numbers[tower] += 1

    def of_tower(self, segment: Params, tower: int | None) -> Params:
        """The parameters of one tower, under its name."""
        if tower is None or self.momentum is not None:
            return segment
        name = self.encoder.segment.names[tower]
        return {name: segment[name]} if name in segment else {}

    def _third_pass(
        self,
        segment: tuple[Params, Params],
        cotangents: Float[Array, "microbatches n d"] | None,
        kept: list[Any],
        batch: Batch,
        keys: Keys,
    ) -> tuple[Params, TokenSums]:
        """The gradient of the segment encoder, and the sums of the token losses.

        Empties `kept`, so that its memory is free before the token losses.
        """
        trained, frozen = segment
        total = self._zeros(trained)
        if cotangents is not None:
            for i, (microbatch, number, tower) in enumerate(self.microbatches(batch)):
                activations = kept.pop(0)
                if self.momentum is not None and tower:
                    continue
                own = self.of_tower(total, tower)
                cotangent = _take(cotangents, i)
                if activations is not None:
                    total |= self.pull_kept(own, activations, cotangent)
                    activations = None  # frees them before the next ones are read
                    continue
                parts = (self.of_tower(part, tower) for part in segment)
                inputs = microbatch, jnp.int32(number), keys.segments, tower
                total |= self.pull_back(own, *parts, cotangent, *inputs)
        sums = self._zeros(jnp.zeros(3))
        scale = self.token_weight / jnp.maximum(batch.answers, 1.0)
        for i, masked in enumerate(batch.masked):
            inputs = masked, jnp.int32(i), keys.tokens, scale
            total, sums = self.pull_tokens(total, sums, trained, frozen, *inputs)
        return self.summed((total, sums if batch.masked else None))

    def with_token_metrics(self, metrics: Metrics, sums: TokenSums) -> Metrics:
        """The metrics with those of the masked tokens."""
        if sums is None:
            return metrics
        loss, right, count = sums
        count = jnp.maximum(count, 1)
        return metrics | {
            "loss": metrics["loss"] + self.token_weight * loss / count,
            "masked_lm_loss": loss / count,
            "masked_lm_accuracy": right / count,
        }

    def segments(
        self,
        segment: Params,
        microbatch: Microbatch,
        row: Number,
        key: DropoutKey,
        tower: int | None = None,
    ) -> Float[Array, "n d"]:
        """Vectors of a micro-batch whose first row is row `row` of its tower."""
        inputs = *microbatch, _row_keys(key, row, microbatch, tower), tower
        params = {"params": {"segment": segment}}
        return self.encoder.apply(params, *inputs, method="segments")

    def token_loss(
        self, segment: Params, masked: Masked, row: Number, key: DropoutKey
    ) -> tuple[Loss, Float[Array, "3"]]:
        """The token loss of a micro-batch, and its `TokenSums`."""
        keys = _row_keys(key, row, masked.microbatch)
        params = {"params": {"segment": segment}}
        inputs = *masked.microbatch, masked.positions, masked.answers, keys
        loss, right = self.encoder.apply(params, *inputs, method="token_loss")
        count = (masked.answers >= 0).sum().astype(jnp.float32)
        return loss, jnp.stack([loss, right, count])

    def _first_row(self, microbatch: Microbatch, index: Number) -> Number:
        """Inside `shard_map`: the first row of this device's part."""
        part = index * self.mesh.size + jax.lax.axis_index("data")
        return part * len(microbatch.lengths)

    def _reader(
        self, frozen: Params, microbatch: Microbatch, index: Number, *rest: Any
    ) -> Callable[[Params], Float[Array, "n d"]]:
        """Inside `shard_map`: trained parameters -> vectors of this device's rows."""
        row = self._first_row(microbatch, index)
        return lambda trained: self.segments(
            freezing.joined(trained, frozen), microbatch, row, *rest
        )

    @functools.partial(jax.jit, static_argnums=(0, 6, 7))
    def encode(
        self,
        trained: Params,
        frozen: Params,
        microbatch: Microbatch,
        index: Number,
        key: DropoutKey,
        tower: int | None,
        keep: bool,
    ) -> tuple[Float[Array, "n d"], Any]:
        """The vectors of a micro-batch.

        With `keep` also a function for each device, from the gradient of the vectors to
        that of `trained`: a tree of activations, and of the weights that it needs.
        """

        @self._per_device(P(), P(), P("data"), P(), P(), out=P("data"))
        def encode(trained, frozen, microbatch, index, key):
            vectors = self._reader(frozen, microbatch, index, key, tower)
            if not keep:
                return vectors(trained), None
            values, vjp = jax.vjp(vectors, trained)
            return values, jax.tree.map(lambda leaf: leaf[None], vjp)

        return encode(trained, frozen, microbatch, index, key)

    @functools.partial(jax.jit, static_argnums=0)
    def document_gradients(self, *inputs: Any) -> tuple[Params, None, Metrics, Any]:
        """The second pass for a segment encoder that is not trained, from the arguments
        of `loss`: the gradient of its parameters, metrics, and the next memory."""
        (gradients,), metrics, memory = self._second_pass((0,), *inputs)
        return gradients, None, metrics, memory

    @functools.partial(jax.jit, static_argnums=0, donate_argnums=3)
    def both_gradients(
        self, trained: Params, frozen: Params, vectors: Array, *rest: Any
    ) -> tuple[Params, Float[Array, "microbatches n d"], Metrics, Any]:
        """The second pass: also the gradient of the segment vectors."""
        inputs = trained, frozen, vectors, *rest
        (gradients, cotangents), metrics, memory = self._second_pass((0, 2), *inputs)
        cotangents = jax.lax.with_sharding_constraint(
            cotangents, NamedSharding(self.mesh, P(None, "data"))
        )
        return gradients, cotangents, metrics, memory

    def _second_pass(
        self, arguments: tuple[int, ...], *inputs: Any
    ) -> tuple[tuple[Any, ...], Metrics, Any]:
        """The gradients of these arguments of `loss`, the metrics, and the memory with
        a copy on every device."""
        gradient = jax.value_and_grad(self.loss, argnums=arguments, has_aux=True)
        (_, (metrics, memory)), gradients = gradient(*inputs)
        whole = NamedSharding(self.mesh, P())
        return gradients, metrics, jax.lax.with_sharding_constraint(memory, whole)

    def loss(
        self,
        trained: Params,
        frozen: Params,
        vectors: Float[Array, "microbatches n d"],
        batch: Batch,
        key: DropoutKey,
        memory: Any = (),
        average: Params = None,
    ) -> tuple[Loss, tuple[Metrics, Any]]:
        """The objective's loss for segment vectors, its metrics, and the next memory.

        `average` has the parameters that follow the trained ones, if any do.
        """
        params = freezing.joined(trained, frozen)
        examples = batch.rows.shape[1]
        blocks = _blocks(examples, self.mesh.size)
        to_blocks = functools.partial(_to_blocks, blocks=blocks)
        flat = vectors.reshape(-1, vectors.shape[-1])
        gathered = jax.lax.with_sharding_constraint(
            flat[to_blocks(batch.rows)],
            NamedSharding(self.mesh, P(None, None, "data")),
        )
        rest = batch.lengths, batch.places, batch.graphs, example_keys(key, examples)
        rest = jax.tree.map(to_blocks, rest)
        # Keep the activations of one block at a time, in the backward pass too.
        views = jax.checkpoint(
            functools.partial(self.views, params, average), prevent_cse=False
        )
        documents = jax.lax.map(lambda block: views(*block), (gathered, *rest))
        documents = _from_blocks(documents)
        return self.objective_loss(
            params, average, documents, batch.targets, key, memory
        )

    def views(
        self, params: Params, average: Params, *inputs: Any
    ) -> Float[Array, "v b w"]:
        """The views of documents from the vectors [v b p d], lengths and places of
        their segments, graphs, and the dropout keys of the examples [1 b]."""
        *inputs, keys = inputs
        keys = None if keys is None else keys[0]

        def read(params, inputs, kinds):
            inputs = *inputs, kinds, keys
            return self.encoder.apply({"params": params}, *inputs, method="views")

        return self._by_both(read, params, average, inputs)

    def _by_both(
        self, read: Callable, params: Params, average: Params, inputs: Any
    ) -> Float[Array, "_ b _"]:
        """`read(params, inputs, kinds)` of all views. If there is an average, it reads
        all views but the first, without a gradient."""
        if average is None:
            return read(params, inputs, self.kinds)
        first, others = (
            jax.tree.map(operator.itemgetter(at), inputs) for at in FIRST_OTHERS
        )
        by_average = read(average, others, self.kinds[1:])
        first = read(params, first, self.kinds[:1])
        return jnp.concatenate([first, jax.lax.stop_gradient(by_average)])

    def objective_loss(
        self,
        params: Params,
        average: Params,
        documents: Float[Array, "v b w"],
        targets: Targets,
        key: DropoutKey,
        memory: Any,
    ) -> tuple[Loss, tuple[Metrics, Any]]:
        """The loss of views; the metrics with it, and the next memory.

        A nested encoder learns from the loss of the mean too, which is `mean_loss`.
        """
        read = lambda params, documents, _: self.encoder.apply(
            {"params": params}, documents, key, method="outputs"
        )
        outputs = self._by_both(read, params, average, documents)
        if isinstance(self.objective, ObjectiveWithMemory):
            loss, metrics, memory = self.objective(outputs, targets, memory)
        elif self.encoder.nested:
            alone, whole = jnp.split(outputs, 2)
            loss, metrics = self.objective(whole, targets)
            mean_loss, _ = self.objective(alone, targets)
            metrics = metrics | {"loss": loss, "mean_loss": mean_loss}
            return loss + mean_loss, (metrics, memory)
        else:
            loss, metrics = self.objective(outputs, targets)
        return loss, (metrics | {"loss": loss}, memory)

    @functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
    def pull_kept(
        self, total: Params, activations: Any, cotangent: Float[Array, "n d"]
    ) -> Params:
        """As `pull_back`, from what `encode` kept."""

        @self._per_device(P("data"), P("data"), P("data"), out=P("data"))
        def pull(total, activations, cotangent):
            vjp = jax.tree.map(lambda leaf: leaf[0], activations)
            return _added(total, vjp(cotangent)[0])

        return pull(total, activations, cotangent)

    @functools.partial(jax.jit, static_argnums=(0, 8), donate_argnums=1)
    def pull_back(
        self,
        total: Params,
        trained: Params,
        frozen: Params,
        cotangent: Float[Array, "n d"],
        microbatch: Microbatch,
        index: Number,
        key: DropoutKey,
        tower: int | None,
    ) -> Params:
        """Adds the gradient of one micro-batch to the sum of each device."""
        data, whole = P("data"), P()

        @self._per_device(data, whole, whole, data, data, whole, whole, out=data)
        def pull(total, trained, frozen, cotangent, microbatch, index, key):
            vectors = self._reader(frozen, microbatch, index, key, tower)
            _, vjp = jax.vjp(vectors, trained)
            return _added(total, vjp(cotangent)[0])

        return pull(total, trained, frozen, cotangent, microbatch, index, key)

    @functools.partial(jax.jit, static_argnums=0, donate_argnums=(1, 2))
    def pull_tokens(
        self,
        total: Params,
        sums: Float[Array, "devices 3"],
        trained: Params,
        frozen: Params,
        masked: Masked,
        index: Number,
        key: DropoutKey,
        scale: Float[Array, ""],
    ) -> tuple[Params, Float[Array, "devices 3"]]:
        """Adds the gradient and the sums of one micro-batch's masked tokens."""
        data, whole = P("data"), P()

        @self._per_device(
            data, data, whole, whole, data, whole, whole, whole, out=(data, data)
        )
        def pull(total, sums, trained, frozen, masked, index, key, scale):
            row = self._first_row(masked.microbatch, index)
            loss = lambda trained: self.token_loss(
                freezing.joined(trained, frozen), masked, row, key
            )
            _, vjp, added = jax.vjp(loss, trained, has_aux=True)
            return _added(total, vjp(scale)[0]), sums + added[None]

        return pull(total, sums, trained, frozen, masked, index, key, scale)

    @functools.partial(jax.jit, static_argnums=0)
    def summed(self, total: Any) -> Any:
        """The total over the devices, once at the end of a step."""
        whole = NamedSharding(self.mesh, P())
        total = jax.tree.map(lambda array: array.sum(0), total)
        return jax.lax.with_sharding_constraint(total, whole)

    def _zeros(self, tree: Any) -> Any:
        """For each array a sum on each device, from zero."""
        devices, rows = self.mesh.size, NamedSharding(self.mesh, P("data"))
        return jax.tree.map(lambda array: _zeros((devices, *array.shape), rows), tree)

    def _per_device(self, *inputs: P, out: Any) -> Callable[[Callable], Callable]:
        # check_vma is off: erf has no rule for this check in jax 0.12.
        return lambda function: jax.shard_map(
            function, mesh=self.mesh, in_specs=inputs, out_specs=out, check_vma=False
        )


def _added(total: Params, gradient: Params) -> Params:
    """A device's sum with a gradient added."""
    return jax.tree.map(lambda t, g: t + g[None], total, gradient)


def light(batch: Batch) -> Batch:
    """The batch without its segments: what the second pass reads beside vectors."""
    none = dict.fromkeys(("microbatches", "towers", "masked"), ())
    return batch._replace(**none, vectors=None, cut=None, answers=None)


def _row_keys(
    key: DropoutKey, row: Number, microbatch: Microbatch, tower: int | None = None
) -> Key[Array, " n"] | None:
    """The dropout key of each row of a micro-batch that begins at row `row`."""
    if key is not None and tower is not None:
        key = jax.random.fold_in(key, tower)
    return _folded(key, row + jnp.arange(len(microbatch.lengths)))


def example_keys(key: DropoutKey, examples: int) -> Key[Array, "1 b"] | None:
    """The dropout key of each example."""
    return None if key is None else _folded(key, jnp.arange(examples))[None]


def _folded(key: DropoutKey, numbers: Int[Array, " n"]) -> Key[Array, " n"] | None:
    """A key for each number; None without a key."""
    if key is None:
        return None
    return jax.vmap(functools.partial(jax.random.fold_in, key))(numbers)


def _blocks(examples: int, devices: int) -> int:
    """The number of blocks into which the light pass cuts the examples of a batch."""
    local = examples // devices
    most = max(local // BLOCK, 1)
    return max(count for count in range(1, most + 1) if local % count == 0)


def _to_blocks(
    array: Shaped[Array, "v b *rest"], blocks: int
) -> Shaped[Array, "{blocks} v c *rest"]:
    """The examples of a batch in blocks, each with examples of every device."""
    shape = (len(array), -1, blocks, *array.shape[2:])
    return jnp.moveaxis(array.reshape(shape), 2, 0)


def _from_blocks(
    array: Shaped[Array, "blocks v c *rest"],
) -> Shaped[Array, "v blocks*c *rest"]:
    """The inverse of `_to_blocks`."""
    _, v, _, *rest = array.shape
    return jnp.moveaxis(array, 0, 2).reshape(v, -1, *rest)


# A program of its own: the encoder is compiled once per width of micro-batches, and not
# again for every number of micro-batches.
@functools.partial(jax.jit, donate_argnums=0)
def _write(
    buffer: Float[Array, "microbatches n d"],
    vectors: Float[Array, "n d"],
    index: Number,
) -> Float[Array, "microbatches n d"]:
    return jax.lax.dynamic_update_index_in_dim(buffer, vectors, index, 0)


@jax.jit
def _take(
    buffer: Float[Array, "microbatches n d"], index: Number
) -> Float[Array, "n d"]:
    return jax.lax.dynamic_index_in_dim(buffer, index, 0, keepdims=False)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _zeros(shape: tuple[int, ...], sharding: NamedSharding) -> Float[Array, "..."]:
    return jax.lax.with_sharding_constraint(jnp.zeros(shape, jnp.float32), sharding)
