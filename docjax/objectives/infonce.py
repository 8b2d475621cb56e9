"""InfoNCE: tell the other view of a document from those of all other documents.

The vectors are those of the whole batch: under a device mesh the compiler gathers
them from all devices, and the gradient flows back to all.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from docjax.errors import UserError
from docjax.kernels import EXACT, unit
from docjax.types import SIMILARITIES


def infonce(
    vectors: Float[Array, "v b d"],
    labels: Int[Array, " b"] | None = None,
    *,
    similarity: str = "dot",
    temperature: float = 1.0,
    symmetric: bool = True,
    include_positive: bool = True,
    reduction: str = "mean",
    mask: Bool[Array, "b m"] | None = None,
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """The loss of view 0 against view 1, and metrics.

    Row i scores all b candidates of view 1, of which candidate i is its positive
    (graph-roberta, Eq. 5 and 6); further views are extra negatives shared by all
    rows. `symmetric` adds the direction from view 1 to view 0 and takes the mean.

    Args:
      vectors: the views' document vectors.
      labels: not used.
      similarity: "dot" or "cosine".
      temperature: divides the similarities.
      symmetric: both directions; False: only view 0 (a query) scores view 1.
      include_positive: False leaves the positive out of the denominator
        (DECA, Eq. 4 as printed).
      reduction: "mean" or "sum" over the rows.
      mask: candidates that count for a row, m = b * (v - 1); the positive always does.

    Returns:
      The loss, and `in_batch_accuracy` (share of rows whose positive scores highest),
      `negatives` (mean number for a row) and `mean_logit` (mean absolute similarity).
    """
    _check(len(vectors), similarity, temperature, reduction)
    vectors = vectors.astype(jnp.float32)
    if similarity == "cosine":
        vectors = unit(vectors)
    rows, candidates = vectors[0], vectors[1:].reshape(-1, vectors.shape[-1])
    logits = jnp.matmul(rows, candidates.T, precision=EXACT) / temperature
    losses, accuracy, negatives = _direction(logits, mask, include_positive)
    if symmetric:
        b = len(rows)
        square = None if mask is None else mask[:, :b].T
        losses_back, accuracy_back, _ = _direction(
            logits[:, :b].T, square, include_positive
        )
        losses = (losses + losses_back) / 2
        accuracy = (accuracy + accuracy_back) / 2
    loss = losses.mean() if reduction == "mean" else losses.sum()
    metrics = {
        "in_batch_accuracy": accuracy,
        "negatives": negatives,
        "mean_logit": jnp.abs(logits).mean(),
    }
    return loss, metrics


def _check(views: int, similarity: str, temperature: float, reduction: str) -> None:
    if similarity not in SIMILARITIES or reduction not in ("mean", "sum"):
        raise UserError(
            f"infonce has similarity 'dot' or 'cosine', not {similarity!r}, and "
            f"reduction 'mean' or 'sum', not {reduction!r}"
        )
    if temperature <= 0:
        raise UserError(f"infonce has temperature {temperature}: give one above 0")
    if views < 2:
        raise UserError(
            f"infonce compares 2 views of a document, not {views}: use "
            "docjax.views.halves.Halves or others that give 2"
        )


def _direction(logits, mask, include_positive):
    """Each row's loss, the accuracy and the mean number of negatives.

    The loss of a row without candidates is 0.
    """
    b, m = logits.shape
    positive = jnp.eye(b, m, dtype=bool)
    counts = jnp.ones((b, m), bool) if mask is None else mask | positive
    kept = counts if include_positive else counts & ~positive
    some = kept.any(-1)
    total = jax.nn.logsumexp(logits, axis=-1, where=kept | ~some[:, None])
    losses = jnp.where(some, total - jnp.diagonal(logits), 0)
    best = jnp.where(counts, logits, -jnp.inf).argmax(-1)
    accuracy = (best == jnp.arange(b)).mean()
    return losses, accuracy, (counts & ~positive).sum(-1).mean()
