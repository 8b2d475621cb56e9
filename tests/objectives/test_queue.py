"""The queue of earlier batches: which of their documents are negatives, and of whom."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from docjax.errors import UserError
from docjax.objectives.infonce import infonce
from docjax.objectives.queue import Memory, Queue
from docjax.types import Targets

B, D = 4, 3
LABELS = jnp.zeros(B, jnp.int32)


def vectors(seed: int, views: int = 2) -> jax.Array:
    drawn = np.random.default_rng(seed).normal(size=(views, B, D))
    return jnp.asarray(drawn, jnp.float32)


def test_rows_are_told_from_the_documents_of_earlier_batches():
    """One direction by hand: the positive, the batch, and one of two places filled."""
    objective = Queue(batches=2, temperature=0.5, symmetric=False)
    now, old = vectors(0), vectors(1, 1)
    memory = Memory(jnp.concatenate([old, vectors(2, 1)]), jnp.int32(1))
    loss, metrics, _ = objective(now, Targets(LABELS), memory)
    scores = np.asarray(now[0] @ jnp.concatenate([now[1], old[0]]).T) / 0.5
    expected = (logsumexp(scores, axis=1) - np.diagonal(scores)).mean()
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    assert metrics["negatives"] == 2 * B - 1


def test_an_empty_memory_leaves_the_loss_of_the_batch():
    objective = Queue(batches=3, similarity="cosine", temperature=0.1)
    now, related = vectors(0), jnp.eye(B, k=1, dtype=bool)
    for targets in (Targets(LABELS), Targets(LABELS, related)):
        loss, _, _ = objective(now, targets, objective.begin(B, D))
        expected, _ = infonce(now, targets, similarity="cosine", temperature=0.1)
        np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_the_latest_batches_are_remembered():
    objective = Queue(batches=2)
    memory = objective.begin(B, D)
    for seed in range(3):
        _, _, memory = objective(vectors(seed), Targets(LABELS), memory)
    assert int(memory.filled) == 2
    np.testing.assert_array_equal(
        memory.vectors, jnp.stack([vectors(2)[1], vectors(1)[1]])
    )


def test_no_gradient_flows_to_what_is_remembered():
    objective = Queue(batches=1)
    now = vectors(0)
    memory = Memory(vectors(1, 1), jnp.int32(1))

    def remembered(vectors):
        return objective(vectors, Targets(LABELS), memory)[2].vectors.sum()

    assert not np.asarray(jax.jit(jax.grad(remembered))(now)).any()


def test_a_queue_without_batches_is_a_mistake():
    with pytest.raises(UserError, match="queue has batches 0: give at least 1"):
        Queue(batches=0)


def test_without_negatives_of_the_batch_only_the_queue_is_left():
    """He et al., 2020, Eq. 1, by hand; Contriever's loss."""
    objective = Queue(2, temperature=0.5, symmetric=False, in_batch=False)
    now, old = vectors(0), vectors(1, 1)
    memory = Memory(jnp.concatenate([old, vectors(2, 1)]), jnp.int32(1))
    loss, metrics, _ = objective(now, Targets(LABELS), memory)
    positive = np.asarray((now[0] * now[1]).sum(-1)) / 0.5
    others = np.asarray(now[0] @ old[0].T) / 0.5
    scores = np.concatenate([positive[:, None], others], axis=1)
    expected = (logsumexp(scores, axis=1) - positive).mean()
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    assert metrics["negatives"] == B


def test_an_empty_queue_alone_gives_no_loss_and_no_gradient():
    objective = Queue(2, symmetric=False, in_batch=False)
    loss = lambda now: objective(now, Targets(LABELS), objective.begin(B, D))[0]
    value, gradient = jax.jit(jax.value_and_grad(loss))(vectors(0))
    assert value == 0 and not np.asarray(gradient).any()


@pytest.mark.parametrize(
    "keywords, words",
    [
        (dict(symmetric=False, momentum=1.0), "momentum 1.0: give a number from 0 to"),
        (dict(momentum=0.9), "set objective.symmetric to False"),
        (dict(in_batch=False), "set objective.symmetric to False"),
    ],
)
def test_a_queue_that_cannot_work_is_a_mistake(keywords, words):
    with pytest.raises(UserError, match=words):
        Queue(**keywords)
