"""The loss of labelled pairs against a loop over pairs, and against torch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from docjax.errors import UserError
from docjax.objectives.pair_similarity import pair_similarity
from docjax.types import Targets

VECTORS = np.random.default_rng(0).normal(size=(2, 6, 4)).astype(np.float32)
LABELS = np.array([1, 0, 1, 1, 0, 0])
TARGETS = Targets(jnp.asarray(LABELS))


def by_hand(margin: float | None) -> tuple[float, list[float]]:
    """The mean loss and the cosine of each pair, in double precision."""
    losses, cosines = [], []
    for left, right, label in zip(*VECTORS.astype(np.float64), LABELS, strict=True):
        cosine = left @ right / np.sqrt((left @ left) * (right @ right))
        if margin is None:
            losses.append((cosine - label) ** 2)
        else:
            losses.append(1 - cosine if label else max(0, cosine - margin))
        cosines.append(cosine)
    return np.mean(losses), cosines


@pytest.mark.parametrize("margin", [None, 0.0, -0.5, 0.3])
def test_the_loss_is_that_of_a_loop_over_pairs(margin):
    loss, metrics = pair_similarity(jnp.asarray(VECTORS), TARGETS, margin=margin)
    expected, cosines = by_hand(margin)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    similar, others = (
        np.mean(np.array(cosines)[[0, 2, 3]]),
        np.mean(cosines[4:] + cosines[1:2]),
    )
    np.testing.assert_allclose(metrics["similar_cosine"], similar, rtol=1e-5)
    np.testing.assert_allclose(metrics["dissimilar_cosine"], others, rtol=1e-5)


@pytest.mark.parametrize("margin", [0.0, -0.5, 0.3])
def test_a_margin_has_loss_and_gradient_of_torch(margin):
    given = torch.tensor(VECTORS, requires_grad=True)
    loss = torch.nn.CosineEmbeddingLoss(margin)(*given, torch.tensor(2 * LABELS - 1))
    loss.backward()
    ours = lambda vectors: pair_similarity(vectors, TARGETS, margin=margin)[0]
    value, gradient = jax.value_and_grad(ours)(jnp.asarray(VECTORS))
    np.testing.assert_allclose(value, loss.item(), rtol=1e-5)
    np.testing.assert_allclose(gradient, given.grad.numpy(), atol=1e-6)


def test_a_pair_that_is_right_has_no_gradient():
    """Equal directions with the label 1, and orthogonal ones with the label 0."""
    vectors = jnp.array([[[1.0, 2.0], [1.0, 0.0]], [[2.0, 4.0], [0.0, 3.0]]])
    targets = Targets(jnp.array([1, 0]))
    value, gradient = jax.value_and_grad(lambda v: pair_similarity(v, targets)[0])(
        vectors
    )
    np.testing.assert_allclose(value, 0, atol=1e-12)
    np.testing.assert_allclose(gradient, 0, atol=1e-6)


@pytest.mark.parametrize("margin", [None, 0.0])
@pytest.mark.parametrize("label", [0, 1])
def test_a_batch_of_one_kind_and_a_zero_vector_are_finite(margin, label):
    targets = Targets(jnp.full(6, label))
    vectors = jnp.asarray(VECTORS).at[0, 1].set(0)
    loss = lambda v: pair_similarity(v, targets, margin=margin)
    (value, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(vectors)
    assert np.isfinite(value) and np.isfinite(gradient).all()
    without = "similar_cosine" if label == 0 else "dissimilar_cosine"
    assert metrics[without] == 0


@pytest.mark.parametrize(
    "views, margin, message",
    [
        (3, None, "2 documents, not 3 views: set examples to .*Pairs and views to"),
        (1, 0.0, "not 1 views"),
        (2, 1.5, "margin 1.5: .* give a number from -1 to 1, or None"),
    ],
)
def test_a_mistake_is_one_line(views, margin, message):
    vectors = jnp.ones((views, 6, 4))
    with pytest.raises(UserError, match=message) as error:
        pair_similarity(vectors, TARGETS, margin=margin)
    assert "\n" not in str(error.value)
