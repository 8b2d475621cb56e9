"""Contrastive Tension: two copies of an encoder agree on the same text alone.

Carlsson et al., 2021. `docjax.encoders.towers.Towers(by="view")` makes the two copies.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from docjax.errors import UserError
from docjax.kernels import EXACT
from docjax.objectives.facts import Metrics, loss
from docjax.types import Targets

NEGATIVES = 7  # pairs of two texts for one of the same text


def _check_run(config: Any, keywords: Mapping[str, Any]) -> None:
    """Raises UserError for batches that have too few documents for their pairs."""
    negatives, batch = keywords["negatives"], config.batch
    if batch is not None and not 1 <= negatives < batch:
        raise UserError(
            f"objective.negatives is {negatives} in batches of {batch}: give at least 1, "
            "and a larger --config.batch than that"
        )


@loss(similarity="dot", check_run=_check_run)
def contrastive_tension(
    vectors: Float[Array, "v b d"], targets: Targets, *, negatives: int = NEGATIVES
) -> tuple[Float[Array, ""], Metrics]:
    """The mean binary cross-entropy of pairs of texts, with dot products as logits.

    A pair is a document read by one copy (view 0) and a document read by the other copy
    (view 1). Each document of the batch is in one identical pair (the answer is 1) and,
    as document of view 0, in `negatives` pairs with the documents that follow it in the
    batch (the answer is 0), the first after the last. The batch is in random order, so
    these pairs are random. A pair that `targets.related` marks is left out.

    Departure: the paper draws new texts for the pairs; here a batch of b texts gives
    b x (1 + `negatives`) pairs with the same share of identical ones.

    The metrics: `in_batch_accuracy` (rows whose own other view has the highest score),
    `positive_loss`, `negative_loss` and `negatives` (mean number per row).

    Raises:
      UserError: for another number of views than 2, or fewer documents than pairs.
    """
    views, b, _ = vectors.shape
    if views != 2 or not 1 <= negatives < b:
        raise UserError(
            f"contrastive_tension has {views} views and {negatives} negatives in batches "
            f"of {b}: give 2 views (docjax.views.twice.Twice) and from 1 to {b - 1} "
            "objective.negatives"
        )
    first, second = vectors.astype(jnp.float32)
    scores = jnp.matmul(first, second.T, precision=EXACT)
    positive, others = jnp.eye(b, dtype=bool), _others(b, negatives, targets)
    of_positive = jnp.where(positive, jax.nn.softplus(-scores), 0).sum()
    of_others = jnp.where(others, jax.nn.softplus(scores), 0).sum()
    count = others.sum()
    return (of_positive + of_others) / (b + count), {
        "in_batch_accuracy": (scores.argmax(-1) == jnp.arange(b)).mean(),
        "positive_loss": of_positive / b,
        "negative_loss": of_others / jnp.maximum(count, 1),
        "negatives": count / b,
    }


def _others(b: int, negatives: int, targets: Targets) -> Bool[Array, "{b} {b}"]:
    """The pairs of different texts."""
    distance = (jnp.arange(b)[None, :] - jnp.arange(b)[:, None]) % b
    pairs = (distance > 0) & (distance <= negatives)
    return pairs if targets.related is None else pairs & ~targets.related
