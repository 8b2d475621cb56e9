"""Cross-entropy against NumPy and scikit-learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss

from docjax.objectives.cross_entropy import cross_entropy
from docjax.types import Targets

LABELS = np.array([2, -1, 0, 1, -1, 2])
TARGETS = Targets(jnp.asarray(LABELS))


def logits(views: int = 1) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(views, len(LABELS), 3)) * 3


@pytest.mark.parametrize("views", [1, 2])
def test_the_loss_is_the_mean_over_labelled_documents_and_views(views):
    given, real = logits(views), LABELS >= 0
    loss, metrics = cross_entropy(jnp.asarray(given), TARGETS)
    shares = np.exp(given) / np.exp(given).sum(-1, keepdims=True)
    flat, targets = shares[:, real].reshape(-1, 3), np.tile(LABELS[real], views)
    np.testing.assert_allclose(
        loss, log_loss(targets, flat, labels=[0, 1, 2]), rtol=1e-6
    )
    expected = accuracy_score(targets, flat.argmax(-1))
    np.testing.assert_allclose(metrics["accuracy"], expected, rtol=1e-6)


def test_documents_without_label_get_exactly_no_gradient():
    loss = lambda v: cross_entropy(v, TARGETS)[0]
    gradient = jax.jit(jax.grad(loss))(jnp.asarray(logits(), jnp.float32))
    assert (gradient[:, LABELS < 0] == 0).all()
    assert (np.abs(gradient[:, LABELS >= 0]).max(-1) > 0).all()


def test_a_batch_without_labels_has_no_loss():
    nothing = Targets(jnp.full(len(LABELS), -1))
    loss = lambda v: cross_entropy(v, nothing)[0]
    value, gradient = jax.jit(jax.value_and_grad(loss))(
        jnp.asarray(logits(), jnp.float32)
    )
    assert value == 0 and (gradient == 0).all()
