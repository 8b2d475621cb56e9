"""The reference that tests and benchmarks compare the gradient cache with."""

from typing import Any

import jax
import jax.numpy as jnp

from docjax.encoders import freezing
from docjax.training.gradient_cache import (
    GradientCache,
    Keys,
    Metrics,
    Params,
    example_keys,
)
from docjax.training.momentum import followed
from docjax.types import Batch


def plain_gradient(
    cache: GradientCache,
    params: Params,
    batch: Batch,
    key: jax.Array | None,
    memory: Any = (),
) -> tuple[Params, Metrics]:
    """The gradient of one pass that keeps all activations, and the metrics."""
    keys, average, own = Keys.of(key), None, memory
    if cache.momentum is not None:
        average, own = followed(memory, params, cache.momentum)
    trained, frozen = freezing.divided(params, cache.encoder.frozen)

    def loss(trained):
        params = freezing.joined(trained, frozen)
        total, metrics = jnp.zeros(()), {"loss": jnp.zeros(())}
        if cache.objective is not None:
            inputs = params, average, batch, keys, own
            total, (metrics, _) = _plain_loss(cache, *inputs)
        sums, row = jnp.zeros(3), 0
        for masked in batch.masked:
            _, added = cache.token_loss(params["segment"], masked, row, keys.tokens)
            sums, row = sums + added, row + len(masked.positions)
        of_all = cache.with_token_metrics(metrics, sums if batch.masked else None)
        return total + of_all["loss"] - metrics["loss"], of_all

    (_, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(trained)
    return gradient, metrics


def _plain_loss(
    cache: GradientCache, params: Params, average: Params, batch: Batch, keys, memory
):
    vectors = []
    for microbatch, number, tower in cache.microbatches(batch):
        row = number * len(microbatch.lengths)
        inputs = microbatch, row, keys.segments, tower
        reader = params if average is None or not tower else average
        vectors.append(cache.segments(reader["segment"], *inputs))
    gathered = jnp.concatenate(vectors)[batch.rows]
    per_example = example_keys(keys.documents, batch.rows.shape[1])
    rest = batch.lengths, batch.places, batch.graphs, per_example
    documents = cache.views(params, average, gathered, *rest)
    inputs = documents, batch.targets, keys.documents, memory
    return cache.objective_loss(params, average, *inputs)
