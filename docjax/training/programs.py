"""The programs of a training step, traced from the shapes of their arguments alone.

A trace can be lowered and compiled for the platform of its mesh, whose devices need not
exist. So docjax knows the memory of a step before it runs, and shows a pod's program on
a machine without accelerators. The arguments have the sharding of a real step, so a
real step reuses the compiled program.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.stages import Traced

from docjax.encoders import freezing
from docjax.encoders.document import without_segment
from docjax.training.gradient_cache import GradientCache, light
from docjax.training.momentum import Following
from docjax.training.sharding import abstract
from docjax.types import Batch, Masked, Microbatch

Shapes = Any  # a tree of arrays or of shapes
INDEX = jax.ShapeDtypeStruct((), jnp.int32)


def microbatch_shape(rows: int, width: int) -> Microbatch:
    """A micro-batch of `rows` segments of `width` tokens."""
    shape = lambda *dimensions: jax.ShapeDtypeStruct(dimensions, jnp.int32)
    return Microbatch(shape(rows, width), shape(rows), shape(rows, 2))


def vector_shape(cache: GradientCache, params: Shapes, microbatch: Shapes) -> Shapes:
    """The vectors of a micro-batch, [n d]."""
    encode = lambda params, microbatch: cache.encoder.apply(
        {"params": params}, *microbatch, None, cache.tower, method="segments"
    )
    return jax.eval_shape(encode, params, microbatch)


def output_shape(cache: GradientCache, params: Shapes, batch: Batch) -> Shapes:
    """The shape [v b d] of the objective's input, for a batch from the host."""
    segment = vector_shape(cache, params, microbatch_shape(1, 1))
    size = *batch.rows.shape, segment.shape[-1]

    def outputs(params: Any, *rest: Any) -> jax.Array:
        documents = cache.views(params, None, *rest, None)
        return cache.encoder.apply({"params": params}, documents, method="outputs")

    rest = batch.lengths, batch.places, batch.graphs
    vectors = jax.ShapeDtypeStruct(size, jnp.float32)
    return jax.eval_shape(outputs, params, vectors, *rest)


def encode(
    cache: GradientCache, params: Shapes, microbatch: Shapes, dropout: bool = True
) -> Traced:
    """The first pass: a micro-batch to its vectors, and with `keep` its activations."""
    whole, rows = abstract(cache.mesh), abstract(cache.mesh, "data")
    return GradientCache.encode.trace(
        cache,
        *whole(segment_params(cache, params)),
        rows(microbatch),
        INDEX,
        _key(cache, dropout),
        cache.tower,
        cache.keep > 0,
    )


def objective(
    cache: GradientCache,
    params: Shapes,
    vectors: Shapes,
    batch: Batch,
    dropout: bool = True,
    memory: Shapes = (),
) -> Traced:
    """The second pass: all vectors [micro-batches n d] to the loss and its gradient."""
    whole, columns = abstract(cache.mesh), abstract(cache.mesh, None, "data")
    parts = freezing.divided(params, cache.encoder.frozen)
    average, own = memory if isinstance(memory, Following) else (None, memory)
    rest = *map(without_segment, parts), without_segment(average)
    trained, frozen, average = whole(rest)
    rows = abstract(cache.mesh, "data")(batch.targets)
    read = columns(light(batch)._replace(targets=None))
    second_pass = GradientCache.document_gradients
    if "segment" in parts[0]:
        second_pass = GradientCache.both_gradients
    return second_pass.trace(
        cache,
        trained,
        frozen,
        columns(vectors),
        read._replace(targets=rows),
        _key(cache, dropout),
        whole(own),
        average,
    )


def pull_back(
    cache: GradientCache, params: Shapes, microbatch: Shapes, dropout: bool = True
) -> Traced:
    """The third pass: the gradient of a micro-batch, added to each device's sum."""
    whole, rows = abstract(cache.mesh), abstract(cache.mesh, "data")
    trained, frozen = segment_params(cache, params)
    return GradientCache.pull_back.trace(
        cache,
        _totals(cache, trained),
        *whole((trained, frozen)),
        rows(vector_shape(cache, params, microbatch)),
        rows(microbatch),
        INDEX,
        _key(cache, dropout),
        cache.tower,
    )


def pull_kept(
    cache: GradientCache, params: Shapes, microbatch: Shapes, dropout: bool = True
) -> Traced:
    """The third pass from the activations that the first one kept."""
    rows = abstract(cache.mesh, "data")
    vectors, activations = encode(cache, params, microbatch, dropout).out_info
    trained, _ = segment_params(cache, params)
    inputs = rows((activations, vectors))
    return GradientCache.pull_kept.trace(cache, _totals(cache, trained), *inputs)


def pull_tokens(
    cache: GradientCache, params: Shapes, microbatch: Shapes, answers: int
) -> Traced:
    """The third pass for masked tokens, `answers` per segment."""
    whole, rows = abstract(cache.mesh), abstract(cache.mesh, "data")
    trained, frozen = segment_params(cache, params)
    shape = jax.ShapeDtypeStruct
    predicted = shape((len(microbatch.lengths), answers), jnp.int32)
    return GradientCache.pull_tokens.trace(
        cache,
        _totals(cache, trained),
        _totals(cache, shape((3,), jnp.float32)),
        *whole((trained, frozen)),
        rows(Masked(microbatch, predicted, predicted)),
        INDEX,
        _key(cache, True),
        whole(shape((), jnp.float32)),
    )


def add_up(cache: GradientCache, params: Shapes) -> Traced:
    """The sum of all devices' gradients."""
    trained = freezing.divided(params, cache.encoder.frozen)[0]["segment"]
    return GradientCache.summed.trace(cache, (_totals(cache, trained), None))


def segment_params(cache: GradientCache, params: Shapes) -> tuple[Shapes, Shapes]:
    """The trained and the frozen parameters of the encoder that reads documents."""
    own = lambda part: cache.of_tower(part.get("segment", {}), cache.tower)
    trained, frozen = freezing.divided(params, cache.encoder.frozen)
    return own(trained), own(frozen)


def _totals(cache: GradientCache, segment: Shapes) -> Shapes:
    """The shapes of one gradient sum of the segment encoder per device."""
    total = lambda a: jax.ShapeDtypeStruct((cache.mesh.size, *a.shape), a.dtype)
    return abstract(cache.mesh, "data")(jax.tree.map(total, segment))


def _key(cache: GradientCache, dropout: bool) -> Shapes:
    if not dropout:
        return None
    return abstract(cache.mesh)(jax.eval_shape(lambda: jax.random.key(0)))
