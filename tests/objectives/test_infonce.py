"""InfoNCE against NumPy in every combination of its keywords."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.errors import UserError
from docjax.objectives.infonce import infonce

B, D = 5, 6


def vectors(views: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(views, B, D)).astype(np.float32)


def some_mask(views: int = 2) -> np.ndarray:
    """Candidates at random; row 3 has none, of some even the positive is left out."""
    mask = np.random.default_rng(1).random((B, B * (views - 1))) < 0.6
    mask[3] = False
    return mask


def by_hand(
    given, similarity, temperature, symmetric, include_positive, reduction, mask
) -> float:
    """The loss as it is printed, row by row in double precision."""
    given = np.asarray(given, np.float64)
    if similarity == "cosine":
        given = given / np.linalg.norm(given, axis=-1, keepdims=True)
    candidates = np.concatenate(given[1:])
    rows = [one_row(i, given[0, i], candidates, mask) for i in range(B)]
    losses = [loss(row, temperature, include_positive) for row in rows]
    if symmetric:
        square = None if mask is None else mask[:, :B].T
        back = [one_row(i, given[1, i], given[0], square) for i in range(B)]
        back = [loss(row, temperature, include_positive) for row in back]
        losses = [(one + other) / 2 for one, other in zip(losses, back)]
    return np.mean(losses) if reduction == "mean" else np.sum(losses)


def one_row(i, query, candidates, mask) -> tuple[float, list[float]]:
    """The similarity of the positive, and those of the negatives that count."""
    counts = [j for j in range(len(candidates)) if mask is None or mask[i, j]]
    return query @ candidates[i], [query @ candidates[j] for j in counts if j != i]


def loss(row, temperature, include_positive) -> float:
    positive, negatives = row[0] / temperature, np.array(row[1]) / temperature
    scores = [positive, *negatives] if include_positive else [*negatives]
    return np.log(np.sum(np.exp(scores))) - positive if scores else 0.0


@pytest.mark.parametrize("views", [2, 3])
@pytest.mark.parametrize("masked", [False, True])
def test_the_loss_is_that_of_the_formula_in_every_combination(views, masked):
    mask, given = some_mask(views) if masked else None, vectors(views)

    @jax.jit
    def losses(given, mask):
        return [infonce(given, mask=mask, **one)[0] for one in combinations()]

    for found, keywords in zip(losses(given, mask), combinations(), strict=True):
        expected = by_hand(given, mask=mask, **keywords)
        np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=str(keywords))


def combinations() -> list[dict]:
    choices = dict(
        similarity=("dot", "cosine"),
        temperature=(1.0, 0.3),
        symmetric=(True, False),
        include_positive=(True, False),
        reduction=("mean", "sum"),
    )
    found = [dict(zip(choices, one)) for one in itertools.product(*choices.values())]
    assert len(found) == 32
    return found


def test_without_the_positive_the_loss_differs_by_the_log_of_the_negatives_share():
    given = jnp.asarray(vectors())
    with_it, _ = infonce(given, symmetric=False, reduction="sum")
    without, _ = infonce(
        given, symmetric=False, include_positive=False, reduction="sum"
    )
    share = np.diagonal(jax.nn.softmax(given[0] @ given[1].T))
    np.testing.assert_allclose(without - with_it, np.log1p(-share).sum(), rtol=1e-4)


def test_the_loss_is_symmetric_in_the_views():
    one, other = vectors()
    there, _ = infonce(jnp.stack([one, other]))
    back, _ = infonce(jnp.stack([other, one]))
    np.testing.assert_allclose(there, back, rtol=1e-6)
    one_sided = [
        infonce(jnp.stack(pair), symmetric=False)[0]
        for pair in ((one, other), (other, one))
    ]
    np.testing.assert_allclose(there, np.mean(one_sided), rtol=1e-6)
    assert abs(one_sided[0] - one_sided[1]) > 0.01


def test_further_views_are_negatives_of_every_row():
    given = vectors(views=3)
    alone, metrics = infonce(jnp.asarray(given[:2]), symmetric=False)
    more, metrics_more = infonce(jnp.asarray(given), symmetric=False)
    assert more > alone
    assert (metrics["negatives"], metrics_more["negatives"]) == (B - 1, 2 * B - 1)
    only_old = np.repeat([[True, False]], B, axis=0).repeat(B, axis=1)
    masked, _ = infonce(jnp.asarray(given), symmetric=False, mask=jnp.asarray(only_old))
    np.testing.assert_allclose(masked, alone, rtol=1e-6)


def test_metrics_count_hits_negatives_and_the_size_of_similarities():
    one = np.eye(B, D, dtype=np.float32) * 3
    other = one.copy()
    other[[0, 1]] = other[[1, 0]]  # the first two find each other
    _, metrics = infonce(jnp.stack([one, other]))
    np.testing.assert_allclose(metrics["in_batch_accuracy"], 3 / B)
    np.testing.assert_allclose(metrics["mean_logit"], 9 * B / B**2)
    assert metrics["negatives"] == B - 1


def test_a_perfect_match_has_no_loss_and_equal_vectors_the_log_of_the_batch():
    sure = jnp.stack([jnp.eye(B, D) * 50] * 2)
    assert infonce(sure)[0] < 1e-6
    same = jnp.ones((2, B, D))
    np.testing.assert_allclose(infonce(same)[0], np.log(B), rtol=1e-6)


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
@pytest.mark.parametrize("include_positive", [False, True])
def test_rows_without_candidates_and_zero_vectors_are_finite(
    similarity, include_positive
):
    given, mask = jnp.asarray(vectors()).at[:, 1].set(0), np.zeros((B, B), bool)
    mask[0, 2] = True
    settings = dict(similarity=similarity, include_positive=include_positive)
    loss = lambda v: infonce(v, mask=jnp.asarray(mask), **settings)[0]
    value, gradient = jax.jit(jax.value_and_grad(loss))(given)
    assert np.isfinite(value) and np.isfinite(gradient).all()
    alone = lambda v: infonce(v[:, :1], **settings)[0]  # a batch of one document
    value, gradient = jax.jit(jax.value_and_grad(alone))(given)
    assert value == 0 and (gradient == 0).all()


def test_half_precision_vectors_are_compared_in_single_precision():
    given = jnp.asarray(vectors(), jnp.bfloat16)
    found, _ = infonce(given)
    expected, _ = infonce(given.astype(jnp.float32))
    assert found.dtype == jnp.float32 and found == expected


@pytest.mark.parametrize(
    "keywords, message",
    [
        (dict(similarity="euclid"), "'dot' or 'cosine', not 'euclid'"),
        (dict(reduction="max"), "'mean' or 'sum', not 'max'"),
        (dict(temperature=0.0), "temperature 0.0: give one above 0"),
    ],
)
def test_a_wrong_value_is_said_with_the_valid_ones(keywords, message):
    with pytest.raises(UserError, match=message):
        infonce(jnp.asarray(vectors()), **keywords)


def test_a_single_view_has_nothing_to_be_compared_with():
    with pytest.raises(UserError, match="2 views of a document, not 1"):
        infonce(jnp.asarray(vectors(views=1)))
