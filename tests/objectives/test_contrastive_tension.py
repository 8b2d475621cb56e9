"""Contrastive Tension, pair by pair in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.errors import UserError
from docjax.objectives.contrastive_tension import contrastive_tension
from docjax.types import Targets

B, D = 6, 4
LABELS = jnp.zeros(B, jnp.int32)


def vectors(scale: float = 1.0) -> jax.Array:
    drawn = np.random.default_rng(0).normal(0, scale, size=(2, B, D))
    return jnp.asarray(drawn, jnp.float32)


def by_pairs(vectors, negatives, related=None) -> tuple[float, int]:
    """Binary cross-entropy -y log s(x) - (1 - y) log(1 - s(x)), one pair at a time."""
    first, second = np.asarray(vectors, np.float64)
    losses = []
    for i in range(B):
        for step in range(negatives + 1):
            j = (i + step) % B
            if step and related is not None and related[i, j]:
                continue
            share = 1 / (1 + np.exp(-first[i] @ second[j]))
            losses.append(-np.log(share if step == 0 else 1 - share))
    return float(np.mean(losses)), len(losses)


@pytest.mark.parametrize("negatives", [1, 3, 5])
def test_the_loss_is_the_mean_over_all_pairs(negatives):
    loss, metrics = contrastive_tension(vectors(), Targets(LABELS), negatives=negatives)
    expected, pairs = by_pairs(vectors(), negatives)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    assert metrics["negatives"] == negatives and pairs == B * (negatives + 1)
    parts = metrics["positive_loss"] + negatives * metrics["negative_loss"]
    np.testing.assert_allclose(parts / (1 + negatives), loss, rtol=1e-6)


def test_a_related_document_is_no_negative_and_a_document_stays_its_own_positive():
    related = np.eye(B, k=1, dtype=bool) | np.eye(B, dtype=bool)
    targets = Targets(LABELS, jnp.asarray(related))
    loss, metrics = contrastive_tension(vectors(), targets, negatives=3)
    expected, pairs = by_pairs(vectors(), 3, related)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    np.testing.assert_allclose(metrics["negatives"], (pairs - B) / B, rtol=1e-6)


def test_large_scores_give_a_finite_loss_and_gradient():
    loss = lambda v: contrastive_tension(v, Targets(LABELS), negatives=3)[0]
    value, gradient = jax.jit(jax.value_and_grad(loss))(vectors(1e3))
    assert np.isfinite(value) and np.isfinite(gradient).all()


def test_both_copies_learn():
    loss = lambda v: contrastive_tension(v, Targets(LABELS), negatives=3)[0]
    gradient = np.asarray(jax.jit(jax.grad(loss))(vectors()))
    assert (np.abs(gradient).max(axis=-1) > 1e-3).all()


@pytest.mark.parametrize("views, negatives", [(1, 3), (3, 3), (2, B), (2, 0)])
def test_impossible_pairs_are_refused(views, negatives):
    given = jnp.zeros((views, B, D))
    with pytest.raises(UserError, match=f"{views} views and {negatives} negatives in"):
        contrastive_tension(given, Targets(LABELS), negatives=negatives)
