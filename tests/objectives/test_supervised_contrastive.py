"""The supervised contrastive loss against a double loop over all pairs of views."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.errors import UserError
from docjax.objectives.supervised_contrastive import supervised_contrastive
from docjax.types import Targets

B, D = 5, 6
LABELS = np.array([1, 0, 1, -1, -1])
DIFFERENT = Targets(jnp.arange(B))


def vectors(views: int) -> np.ndarray:
    return np.random.default_rng(views).normal(size=(views, B, D)).astype(np.float32)


def links() -> np.ndarray:
    """Document 0 names 3, in one direction; 4 is alone."""
    mask = np.zeros((B, B), bool)
    mask[0, 3] = True
    return mask


def by_hand(given, temperature, together) -> tuple[float, float, float]:
    """Eq. 2, anchor by anchor in double precision: loss, positives, anchors.

    together: whether the documents i and j belong together.
    """
    views = len(given)
    double = np.asarray(given, np.float64)
    double /= np.linalg.norm(double, axis=-1, keepdims=True)
    every = [(v, i) for v in range(views) for i in range(B)]
    losses, positives = [], []
    for anchor in every:
        others = [one for one in every if one != anchor]
        score = {one: double[anchor] @ double[one] / temperature for one in others}
        total = np.log(sum(np.exp(score[one]) for one in others))
        own = [one for one in others if together(anchor[1], one[1])]
        positives.append(len(own))
        if own:
            losses.append(-np.mean([score[one] - total for one in own]))
    return np.mean(losses), np.mean(positives), len(losses) / len(every)


def same_label(i: int, j: int) -> bool:
    return i == j or (LABELS[i] == LABELS[j] and LABELS[i] >= 0)


@pytest.mark.parametrize("views", [2, 3, 4, 5])
@pytest.mark.parametrize("by", ["document", "label"])
@pytest.mark.parametrize("related", [False, True])
def test_the_loss_is_that_of_a_double_loop(views, by, related):
    mask, given = links(), vectors(views)
    targets = Targets(jnp.asarray(LABELS), jnp.asarray(mask) if related else None)

    def together(i, j):
        linked = related and (mask[i, j] or mask[j, i])
        return i == j or linked or (by == "label" and same_label(i, j))

    for temperature in (0.5, 2.0):
        loss, metrics = supervised_contrastive(
            jnp.asarray(given), targets, temperature=temperature, by=by
        )
        expected, positives, anchors = by_hand(given, temperature, together)
        np.testing.assert_allclose(loss, expected, rtol=5e-6)
        np.testing.assert_allclose(metrics["positives"], positives, rtol=1e-6)
        np.testing.assert_allclose(metrics["anchors"], anchors, rtol=1e-6)


@pytest.mark.parametrize("by", ["document", "label"])
def test_two_views_of_documents_with_different_labels_give_nt_xent(by):
    """Chen et al. 2020, Eq. 1: each view finds the other among 2b - 1."""
    given = vectors(2)
    flat = given.astype(np.float64).reshape(2 * B, D)
    flat /= np.linalg.norm(flat, axis=-1, keepdims=True)
    scores = flat @ flat.T / 0.5
    np.fill_diagonal(scores, -np.inf)
    other = (np.arange(2 * B) + B) % (2 * B)
    rows = np.arange(2 * B)
    expected = (np.log(np.exp(scores).sum(-1)) - scores[rows, other]).mean()
    found, _ = supervised_contrastive(jnp.asarray(given), DIFFERENT, by=by)
    np.testing.assert_allclose(found, expected, rtol=5e-6)


def test_a_batch_without_any_positive_changes_nothing():
    given = jnp.asarray(vectors(1))
    loss = lambda x: supervised_contrastive(x, DIFFERENT)[0]
    _, metrics = supervised_contrastive(given, DIFFERENT)
    assert loss(given) == metrics["anchors"] == metrics["positives"] == 0
    assert not np.any(jax.grad(loss)(given))


def test_anchors_without_positives_are_left_out():
    """Of single views only those of labels 1 have another to find."""
    given, targets = vectors(1), Targets(jnp.asarray(LABELS))
    loss, metrics = supervised_contrastive(jnp.asarray(given), targets, by="label")
    expected, positives, anchors = by_hand(given, 0.5, same_label)
    assert anchors == 2 / B and positives == 2 / B
    np.testing.assert_allclose(loss, expected, rtol=5e-6)
    np.testing.assert_allclose(metrics["anchors"], anchors, rtol=1e-6)


@pytest.mark.parametrize("views, documents", [(1, B), (1, 1), (2, 1)])
def test_without_any_negative_or_positive_the_loss_is_zero_and_so_is_the_gradient(
    views, documents
):
    given = jnp.asarray(vectors(views))[:, :documents]
    targets = Targets(jnp.full(documents, -1))
    loss = lambda v: supervised_contrastive(v, targets, by="label")[0]
    value, gradient = jax.jit(jax.value_and_grad(loss))(given)
    np.testing.assert_allclose(value, 0, atol=1e-6)
    np.testing.assert_allclose(gradient, 0, atol=1e-6)


def test_zero_vectors_have_a_finite_loss_and_gradient():
    given = jnp.asarray(vectors(2)).at[:, 1].set(0)
    loss = lambda v: supervised_contrastive(v, DIFFERENT)[0]
    value, gradient = jax.jit(jax.value_and_grad(loss))(given)
    assert np.isfinite(value) and np.isfinite(gradient).all()


@pytest.mark.parametrize(
    "keywords, message",
    [
        (dict(temperature=0.0), "temperature 0.0: give a number above 0"),
        (dict(by="author"), "'document' or 'label', not 'author'"),
    ],
)
def test_a_wrong_value_is_said_with_the_valid_ones(keywords, message):
    with pytest.raises(UserError, match=message):
        supervised_contrastive(jnp.asarray(vectors(2)), DIFFERENT, **keywords)


def test_relations_of_another_shape_are_a_mistake_with_both_shapes():
    targets = DIFFERENT._replace(related=jnp.zeros((B, 2 * B), bool))
    message = r"related has shape \[5, 10\].*5 documents needs \[5, 5\]"
    with pytest.raises(UserError, match=message) as error:
        supervised_contrastive(jnp.asarray(vectors(3)), targets)
    assert "\n" not in str(error.value)
