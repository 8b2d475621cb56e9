"""The encoder that follows: its parameters, what it reads, and that it is not trained."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.objectives.queue import Memory
from docjax.training import sharding
from docjax.training.momentum import Following, followed
from docjax.types import Graphs


def test_the_average_follows_by_one_minus_momentum():
    memory = Following({"a": jnp.array([1.0, 2.0])}, Memory(jnp.ones((1, 1, 1)), 0))
    params = {"a": jnp.array([3.0, -2.0])}
    once = followed(memory, params, 0.75)
    twice = followed(once, params, 0.75)
    np.testing.assert_allclose(once.params["a"], [1.5, 1.0])
    np.testing.assert_allclose(twice.params["a"], [1.875, 0.25])
    np.testing.assert_array_equal(twice.objective.vectors, memory.objective.vectors)


@pytest.fixture(scope="module")
def expected(problem):
    """((loss, vectors of view 1), gradient), written document by document: no batches,
    no towers, no passes. With it the average that reads view 1."""
    one = problem("momentum")
    params, memory = one.params(), one.memory
    average = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, memory.params, params)
    first, second = (
        tuple(map(np.stack, zip(*[apart(view) for view in views])))
        for views in zip(*one.documents())
    )

    def read(params, tokens, lengths, complete):
        places = jnp.zeros((len(lengths), 2), int)
        apply = functools.partial(one.encoder.apply, {"params": params})
        vectors = apply(tokens, lengths, places, method="segments")
        inputs = vectors, lengths, places, Graphs(complete)
        document = apply(*inputs, method="documents")
        return apply(document[None, None], None, method="outputs")[0, 0]

    def loss(params):
        each = jax.vmap(read, (None, 0, 0, 0))
        queries, keys = each(params, *first), each(average, *second)
        positive = (queries * keys).sum(-1)
        others = queries @ memory.objective.vectors[0].T
        scores = jnp.concatenate([positive[:, None], others], axis=1) / 2.0
        return (jax.nn.logsumexp(scores, axis=1) - scores[:, 0]).mean(), keys

    value = jax.jit(jax.value_and_grad(loss, has_aux=True))(params)
    return *jax.device_get(value), average


def apart(view, most: int = 8) -> tuple:
    """A view's tokens [p t], lengths [p] and complete graph."""
    tokens, lengths = np.zeros((most, 16), np.int32), np.zeros(most, np.int32)
    for i, length in enumerate(view.lengths):
        tokens[i, :length] = view.tokens[view.offsets[i] : view.offsets[i + 1]]
        lengths[i] = length
    complete = np.zeros((most + 1, most + 1), bool)
    complete[: len(view) + 1, : len(view) + 1] = True
    return tokens, lengths, complete


@pytest.mark.parametrize("devices", [1, 8])
def test_view_1_is_read_by_the_average_alone(
    problem, mesh, worst_error, expected, devices
):
    one, device = problem("momentum"), mesh(devices)
    (loss, keys), gradients, average = expected
    put = lambda tree: sharding.replicate(tree, device)
    batch = sharding.put_batch(one.batch(16), device)
    inputs = put(one.params()), batch, None, put(one.memory)
    found, metrics, after = one.cache(device).gradient(*inputs)
    assert worst_error(jax.device_get(found), gradients) <= 5e-6
    np.testing.assert_allclose(metrics["loss"], loss, rtol=5e-6)
    np.testing.assert_allclose(after.objective.vectors[0], keys, atol=2e-6)
    before = one.memory.objective.vectors
    np.testing.assert_array_equal(after.objective.vectors[1], before[0])
    for ours, theirs in zip(jax.tree.leaves(after.params), jax.tree.leaves(average)):
        np.testing.assert_allclose(ours, theirs, atol=1e-7)
