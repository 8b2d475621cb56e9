"""InfoNCE against NumPy in every combination of its keywords."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.errors import UserError
from docjax.objectives.infonce import infonce
from docjax.types import Targets

B, D = 5, 6
NONE = Targets(jnp.full(B, -1))


def vectors(views: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(views, B, D)).astype(np.float32)


def related(candidates: int = B) -> np.ndarray:
    """Relations at random; row 3 is related to all, some rows to their own candidate."""
    mask = np.random.default_rng(1).random((B, candidates)) < 0.4
    mask[3] = True
    return mask


def among(mask: np.ndarray | None) -> Targets:
    """Targets with these relations."""
    return NONE if mask is None else NONE._replace(related=jnp.asarray(mask))


def by_hand(
    given, similarity, temperature, symmetric, include_positive, reduction, related
) -> float:
    """The loss as it is printed, row by row in double precision."""
    given = np.asarray(given, np.float64)
    if similarity == "cosine":
        given = given / np.linalg.norm(given, axis=-1, keepdims=True)
    candidates = np.concatenate(given[1:])
    rows = [one_row(i, given[0, i], candidates, related) for i in range(B)]
    losses = [loss(row, temperature, include_positive) for row in rows]
    if symmetric:
        square = None if related is None else related[:, :B].T
        back = [one_row(i, given[1, i], given[0], square) for i in range(B)]
        back = [loss(row, temperature, include_positive) for row in back]
        losses = [(one + other) / 2 for one, other in zip(losses, back)]
    return np.mean(losses) if reduction == "mean" else np.sum(losses)


def one_row(i, query, candidates, related) -> tuple[float, list[float]]:
    """The similarity of the positive, and those of the negatives that count."""
    others = [j for j in range(len(candidates)) if j != i]
    counts = [j for j in others if related is None or not related[i, j]]
    return query @ candidates[i], [query @ candidates[j] for j in counts]


def loss(row, temperature, include_positive) -> float:
    positive, negatives = row[0] / temperature, np.array(row[1]) / temperature
    scores = [positive, *negatives] if include_positive else [*negatives]
    return np.log(np.sum(np.exp(scores))) - positive if scores else 0.0


@pytest.mark.parametrize("views", [2, 3])
@pytest.mark.parametrize("relations", ["none", "of documents", "of candidates"])
def test_the_loss_is_that_of_the_formula_in_every_combination(views, relations):
    given, m = vectors(views), B * (views - 1)
    own = {"none": None, "of documents": related(), "of candidates": related(m)}
    mask = own[relations]

    @jax.jit
    def losses(given, targets):
        return [infonce(given, targets, **one)[0] for one in combinations()]

    every = np.tile(mask, (1, m // B)) if relations == "of documents" else mask
    values = losses(given, among(mask))
    for found, keywords in zip(values, combinations(), strict=True):
        expected = by_hand(given, related=every, **keywords)
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
    with_it, _ = infonce(given, NONE, symmetric=False, reduction="sum")
    only = dict(symmetric=False, reduction="sum")
    without, _ = infonce(given, NONE, include_positive=False, **only)
    share = np.diagonal(jax.nn.softmax(given[0] @ given[1].T))
    np.testing.assert_allclose(without - with_it, np.log1p(-share).sum(), rtol=1e-4)


def test_the_loss_is_symmetric_in_the_views():
    one, other = vectors()
    there, _ = infonce(jnp.stack([one, other]), NONE)
    back, _ = infonce(jnp.stack([other, one]), NONE)
    np.testing.assert_allclose(there, back, rtol=1e-6)
    one_sided = [
        infonce(jnp.stack(pair), NONE, symmetric=False)[0]
        for pair in ((one, other), (other, one))
    ]
    np.testing.assert_allclose(there, np.mean(one_sided), rtol=1e-6)
    assert abs(one_sided[0] - one_sided[1]) > 0.01


def test_further_views_are_negatives_of_every_row():
    given = vectors(views=3)
    alone, metrics = infonce(jnp.asarray(given[:2]), NONE, symmetric=False)
    more, metrics_more = infonce(jnp.asarray(given), NONE, symmetric=False)
    assert more > alone
    assert (metrics["negatives"], metrics_more["negatives"]) == (B - 1, 2 * B - 1)
    new = among(np.repeat([[False, True]], B, axis=0).repeat(B, axis=1))
    without, _ = infonce(jnp.asarray(given), new, symmetric=False)
    np.testing.assert_allclose(without, alone, rtol=1e-6)


def test_a_related_candidate_gets_exactly_no_gradient():
    mask = np.zeros((B, B), bool)
    mask[:, 2] = True
    loss = lambda v: infonce(v, among(mask), symmetric=False, reduction="sum")[0]
    gradient = jax.jit(jax.grad(loss))(jnp.asarray(vectors()))
    alone = lambda v: infonce(v, NONE, symmetric=False)[0]
    assert (jax.jit(jax.grad(alone))(jnp.asarray(vectors()))[1] != 0).all()
    # Only row 2 scores candidate 2: all else that candidate 2 gets comes from there.
    row = lambda c: infonce_row(vectors()[0, 2], vectors()[1].copy(), c)
    np.testing.assert_allclose(
        gradient[1, 2], jax.jit(jax.grad(row))(jnp.asarray(vectors()[1, 2])), atol=1e-5
    )


def infonce_row(query, candidates, second):
    """The loss of row 2 as a function of candidate 2."""
    scores = jnp.asarray(candidates).at[2].set(second) @ query
    return jax.nn.logsumexp(scores) - scores[2]


def test_metrics_count_hits_negatives_and_the_size_of_similarities():
    one = np.eye(B, D, dtype=np.float32) * 3
    other = one.copy()
    other[[0, 1]] = other[[1, 0]]  # the first two find each other
    _, metrics = infonce(jnp.stack([one, other]), NONE)
    np.testing.assert_allclose(metrics["in_batch_accuracy"], 3 / B)
    np.testing.assert_allclose(metrics["mean_logit"], 9 * B / B**2)
    assert metrics["negatives"] == B - 1
    hidden = np.zeros((B, B), bool)
    hidden[0, 1] = hidden[0, 0] = True  # row 0 no longer scores the one that it finds
    _, metrics = infonce(jnp.stack([one, other]), among(hidden), symmetric=False)
    np.testing.assert_allclose(metrics["in_batch_accuracy"], 3 / B + 1 / B)
    np.testing.assert_allclose(metrics["negatives"], B - 1 - 1 / B)


def test_a_perfect_match_has_no_loss_and_equal_vectors_the_log_of_the_batch():
    sure = jnp.stack([jnp.eye(B, D) * 50] * 2)
    assert infonce(sure, NONE)[0] < 1e-6
    same = jnp.ones((2, B, D))
    np.testing.assert_allclose(infonce(same, NONE)[0], np.log(B), rtol=1e-6)


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
@pytest.mark.parametrize("include_positive", [False, True])
def test_rows_without_candidates_and_zero_vectors_are_finite(
    similarity, include_positive
):
    given, mask = jnp.asarray(vectors()).at[:, 1].set(0), np.ones((B, B), bool)
    mask[0, 2] = False
    settings = dict(similarity=similarity, include_positive=include_positive)
    loss = lambda v: infonce(v, among(mask), **settings)[0]
    value, gradient = jax.jit(jax.value_and_grad(loss))(given)
    assert np.isfinite(value) and np.isfinite(gradient).all()
    alone = lambda v: infonce(v[:, :1], NONE, **settings)[0]  # a batch of one document
    value, gradient = jax.jit(jax.value_and_grad(alone))(given)
    assert value == 0 and (gradient == 0).all()


def test_half_precision_vectors_are_compared_in_single_precision():
    given = jnp.asarray(vectors(), jnp.bfloat16)
    found, _ = infonce(given, NONE)
    expected, _ = infonce(given.astype(jnp.float32), NONE)
    assert found.dtype == jnp.float32 and found == expected


@pytest.mark.parametrize(
    "keywords, message",
    [
        (dict(similarity="euclid"), "'dot' or 'cosine', not 'euclid'"),
        (dict(reduction="max"), "'mean' or 'sum', not 'max'"),
        (dict(temperature=0.0), "temperature 0.0: give a number above 0"),
    ],
)
def test_a_wrong_value_is_said_with_the_valid_ones(keywords, message):
    with pytest.raises(UserError, match=message):
        infonce(jnp.asarray(vectors()), NONE, **keywords)


def test_a_single_view_has_nothing_to_be_compared_with():
    with pytest.raises(UserError, match="2 views of a document, not 1"):
        infonce(jnp.asarray(vectors(views=1)), NONE)


@pytest.mark.parametrize("shape", [(B - 1, B), (B, B - 1), (B, 1), (B, 3 * B), (B, 0)])
def test_relations_of_another_shape_are_a_mistake_with_both_shapes(shape):
    given, targets = jnp.asarray(vectors(views=3)), among(np.zeros(shape, bool))
    with pytest.raises(UserError, match=r"related has shape \[.*need \[5, 10\]") as one:
        infonce(given, targets)
    assert str(list(shape)) in str(one.value) and "\n" not in str(one.value)


def test_narrower_vectors_have_a_loss_of_their_own():
    """Each width as if it were all; the metrics are those of the whole vectors."""
    given = jnp.asarray(vectors())
    keywords = dict(similarity="cosine", temperature=0.1)
    found, metrics = infonce(given, NONE, widths=(2, 4), **keywords)
    alone = [infonce(given[..., :w], NONE, **keywords) for w in (2, 4, D)]
    assert float(found) == pytest.approx(np.mean([float(x) for x, _ in alone]), 1e-6)
    assert metrics == alone[-1][1]
    with pytest.raises(UserError, match="widths has 6: the vectors have 6 numbers"):
        infonce(given, NONE, widths=(2, D))


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_the_best_of_several_vectors_is_the_similarity(similarity):
    """Against NumPy: view 0 is one vector, repeated; a candidate is three vectors."""
    generator = np.random.default_rng(0)
    queries = generator.normal(size=(B, 2)).astype(np.float32)
    documents = generator.normal(size=(2, B, 3, 2)).astype(np.float32)
    given = np.stack([np.tile(queries, 3), *documents.reshape(2, B, 6)])
    loss, metrics = infonce(
        jnp.asarray(given), NONE, similarity=similarity, symmetric=False, parts=3
    )
    if similarity == "cosine":
        queries /= np.linalg.norm(queries, axis=-1, keepdims=True)
        documents /= np.linalg.norm(documents, axis=-1, keepdims=True)
    logits = np.einsum("qd,vbpd->qvbp", queries, documents).max(-1).reshape(B, -1)
    own = logits[np.arange(B), np.arange(B)]
    expected = (np.log(np.exp(logits).sum(-1)) - own).mean()
    assert float(loss) == pytest.approx(expected, 1e-5)
    assert metrics["negatives"] == 2 * B - 1


@pytest.mark.parametrize(
    "keywords, message",
    [
        ({"parts": 4}, "objective.parts 4 does not divide vectors of 6 numbers"),
        (
            {"parts": 3, "widths": (2,)},
            r"widths \[2\] do not go with objective.parts 3",
        ),
    ],
)
def test_parts_that_do_not_fit_are_told(keywords, message):
    with pytest.raises(UserError, match=message):
        infonce(jnp.asarray(vectors()), NONE, **keywords)
