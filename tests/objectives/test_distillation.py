"""Distillation against NumPy, and what it must not do to similar documents."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.errors import UserError
from docjax.objectives.distillation import Distillation
from docjax.objectives.infonce import infonce
from docjax.types import Targets

B, D = 6, 5


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def taught(teacher: np.ndarray) -> Targets:
    return Targets(jnp.full(len(teacher), -1), teacher=jnp.asarray(teacher))


def by_hand(views: np.ndarray, teacher: np.ndarray, temperature: float) -> float:
    """The formula of the docstring, in double precision."""
    unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)
    views, teacher = unit(views.astype(float)), unit(teacher.astype(float))
    softmax = lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    wanted = softmax(teacher @ teacher.T / temperature)
    losses = []
    for one, other in ((views[0], views[-1]), (views[-1], views[0])):
        found = softmax(one @ other.T / temperature)
        losses.append((wanted * np.log(wanted / found)).sum(-1).mean())
    return float(np.mean(losses))


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_the_loss_is_that_of_numpy(views, temperature):
    vectors, teacher = drawn(views, B, D), drawn(B, D + 2)
    loss, metrics = Distillation(temperature)(jnp.asarray(vectors), taught(teacher))
    expected = by_hand(vectors, teacher, temperature)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    assert metrics["negatives"] == B - 1


def test_contrast_adds_infonce_of_dot_products():
    vectors, targets = jnp.asarray(drawn(2, B, D)), taught(drawn(B, D + 2))
    alone, _ = Distillation()(vectors, targets)
    with_contrast = Distillation(contrast=0.3, contrast_temperature=0.7)
    both, metrics = with_contrast(vectors, targets)
    added, _ = infonce(vectors, targets, similarity="dot", temperature=0.7)
    np.testing.assert_allclose(both, alone + 0.3 * added, rtol=1e-6)
    np.testing.assert_allclose(metrics["infonce"], added)
    with pytest.raises(UserError, match="contrast 0.3 compares 2 views"):
        Distillation(contrast=0.3)(vectors[:1], targets)


def test_vectors_that_are_as_similar_as_the_teacher_s_have_no_loss():
    teacher = drawn(B, D)
    turned = teacher @ np.linalg.qr(drawn(D, D))[0] * 3  # cosines stay
    vectors = jnp.asarray(np.stack([turned, turned]))
    gradient = jax.jit(jax.grad(lambda v: Distillation()(v, taught(teacher))[0]))(
        vectors
    )
    assert abs(Distillation()(vectors, taught(teacher))[0]) < 1e-6
    assert np.abs(gradient).max() < 1e-5


def test_documents_that_the_teacher_finds_alike_are_not_pushed_apart():
    """InfoNCE pushes them apart, as it does all documents of a batch."""
    teacher = drawn(B, D)
    teacher[1] = teacher[0] + 0.3 * drawn(1, 1, D)[0, 0]
    vectors = jnp.asarray(np.stack([teacher, teacher]))

    def similarity(views):
        first, second = views[0, 0], views[1, 1]
        return float(first @ second / jnp.linalg.norm(first) / jnp.linalg.norm(second))

    def after_a_step(loss):
        return similarity(vectors - 0.5 * jax.jit(jax.grad(loss))(vectors))

    alone = taught(teacher)
    distilled = after_a_step(lambda v: Distillation()(v, alone)[0])
    contrasted = after_a_step(
        lambda v: infonce(v, alone, similarity="cosine", temperature=0.1)[0]
    )
    assert abs(distilled - similarity(vectors)) < 1e-5
    assert contrasted < distilled - 1e-3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(temperature=0.0), "temperature 0.0: give a number above 0"),
        (dict(contrast_temperature=0.0), "contrast_temperature 0.0: give a number"),
        (dict(contrast=-1.0), "contrast -1.0"),
        (dict(neighbours=0), "neighbours 0"),
        (dict(smoothing=1.5), "smoothing 1.5"),
    ],
)
def test_values_that_cannot_work_are_refused(wrong, message):
    with pytest.raises(UserError, match=message):
        Distillation(**wrong)


def test_a_third_view_and_a_missing_teacher_are_refused():
    for views, targets in ((3, taught(drawn(B, D))), (2, Targets(jnp.zeros(B)))):
        with pytest.raises(UserError, match="1 or 2 views"):
            Distillation()(jnp.asarray(drawn(views, B, D)), targets)
