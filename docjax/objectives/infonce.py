"""InfoNCE: tell a document's other view from the views of all other documents.

The loss reads the vectors of the whole batch. Under a device mesh the compiler gathers
the vectors from all devices, and the gradient flows back to all devices.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from docjax.errors import UserError
from docjax.kernels import EXACT, unit
from docjax.objectives.facts import Metrics, loss
from docjax.objectives.widths import over_widths
from docjax.types import SIMILARITIES, Targets


def _check_run(config: Any, keywords: Mapping[str, Any]) -> None:
    """Raises UserError for several vectors of a document that has one."""
    parts = keywords["parts"]
    if parts != 1 and config.encoder.built.parts == 1:
        raise UserError(
            f"objective.parts is {parts}, but encoder.document gives a document one "
            "vector: give 1, or docjax.encoders.first_segments.FirstSegments"
        )


@loss(check_run=_check_run)
def infonce(  # noqa: PLR0913 the fields of a config
    vectors: Float[Array, "v b d"],
    targets: Targets,
    *,
    similarity: str = "dot",
    temperature: float = 1.0,
    symmetric: bool = True,
    include_positive: bool = True,
    reduction: str = "mean",
    widths: Sequence[int] = (),
    parts: int = 1,
) -> tuple[Float[Array, ""], Metrics]:
    """The loss of view 0 against view 1, and metrics (graph-roberta, Eq. 5 and 6).

    Row i scores all candidates of view 1; candidate i is its positive. All rows share
    further views as negatives. Those that `targets.related` marks are none of the row.

    Args:
      vectors: the views' document vectors.
      similarity: "dot" or "cosine".
      temperature: divides the similarities.
      symmetric: takes the mean with the reverse direction, view 1 against view 0.
      include_positive: False keeps it out of the denominator (DECA, Eq. 4 as printed).
      reduction: "mean" or "sum" over the rows.
      widths: see `over_widths`.
      parts: number of vectors that a candidate has side by side; the most similar one
        counts. View 0 has one, repeated (`docjax.encoders.first_segments`).

    The metrics: `in_batch_accuracy` (rows whose positive is best), `negatives` (mean
    number per row) and `mean_logit` (mean absolute logit), of the whole vectors.
    """
    _check(len(vectors), similarity, temperature, reduction)
    _check_parts(vectors.shape[-1], widths, parts)

    def of_width(cut: Float[Array, "v b w"]) -> tuple[Float[Array, ""], Metrics]:
        logits = _similarities(cut, similarity, parts) / temperature
        rows, metrics = _of_logits(logits, targets, symmetric, include_positive)
        return rows.mean() if reduction == "mean" else rows.sum(), metrics

    return over_widths(of_width, vectors, widths)


def _of_logits(
    logits: Float[Array, "b m"],
    targets: Targets,
    symmetric: bool,
    include_positive: bool,
) -> tuple[Float[Array, " b"], Metrics]:
    """The loss of each row, and the metrics."""
    counted = candidates_of(targets, *logits.shape)
    losses, accuracy, negatives = _direction(logits, counted, include_positive)
    if symmetric:
        b = len(logits)  # view 1 against view 0, without the further views
        back = _direction(logits[:, :b].T, counted[:, :b].T, include_positive)
        losses, accuracy = (losses + back[0]) / 2, (accuracy + back[1]) / 2
    return losses, {
        "in_batch_accuracy": accuracy,
        "negatives": negatives,
        "mean_logit": jnp.abs(logits).mean(),
    }


def _similarities(
    vectors: Float[Array, "v b d"], similarity: str, parts: int
) -> Float[Array, "b m"]:
    """The similarities of view 0 to all documents of the other views."""
    v, b, d = vectors.shape
    vectors = vectors.reshape(v, b, parts, d // parts)
    if similarity == "cosine":
        vectors = unit(vectors)
    rows, candidates = vectors[0, :, 0], vectors[1:].reshape(-1, d // parts)
    products = jnp.matmul(rows, candidates.T, precision=EXACT)
    return products.reshape(b, -1, parts).max(-1)


def candidates_of(targets: Targets, b: int, m: int) -> Bool[Array, "{b} {m}"]:
    """The candidates that count for each row: its positive and all unrelated ones.
    Raises UserError for a relation mask of another shape."""
    if targets.related is None:
        return jnp.ones((b, m), bool)
    shape = tuple(targets.related.shape)
    if shape not in ((b, m), (b, b)):
        raise UserError(
            f"targets.related has shape {list(shape)}: {b} examples with {m} "
            f"candidates need [{b}, {m}], or [{b}, {b}] for relations of documents"
        )
    positive = jnp.eye(b, m, dtype=bool)
    return ~jnp.tile(targets.related, (1, m // shape[1])) | positive


def _check(views: int, similarity: str, temperature: float, reduction: str) -> None:
    if similarity not in SIMILARITIES or reduction not in ("mean", "sum"):
        raise UserError(
            f"infonce takes similarity 'dot' or 'cosine', not {similarity!r}, and "
            f"reduction 'mean' or 'sum', not {reduction!r}"
        )
    if temperature <= 0:
        raise UserError(f"infonce has temperature {temperature}: give a number above 0")
    if views < 2:
        raise UserError(
            f"infonce compares 2 views of a document, not {views}: use "
            "docjax.views.halves.Halves or another part that gives 2 views"
        )


def _check_parts(full: int, widths: Sequence[int], parts: int) -> None:
    if parts < 1 or full % parts:
        raise UserError(
            f"objective.parts {parts} does not divide vectors of {full} numbers: give "
            "encoder.document.parts"
        )
    if widths and parts > 1:
        raise UserError(
            f"objective.widths {list(widths)} do not go with objective.parts {parts}: "
            "several vectors cannot be cut; leave the widths out"
        )


def _direction(
    logits: Float[Array, "b m"], counted: Bool[Array, "b m"], include_positive: bool
) -> tuple[Float[Array, " b"], Float[Array, ""], Float[Array, ""]]:
    """Each row's loss, the accuracy and the mean number of negatives.

    The loss of a row without candidates is 0.
    """
    b, m = logits.shape
    positive = jnp.eye(b, m, dtype=bool)
    kept = counted if include_positive else counted & ~positive
    has_candidates = kept.any(-1)
    where = kept | ~has_candidates[:, None]
    total = jax.nn.logsumexp(logits, axis=-1, where=where)
    losses = jnp.where(has_candidates, total - jnp.diagonal(logits), 0)
    best = jnp.where(counted, logits, -jnp.inf).argmax(-1)
    accuracy = (best == jnp.arange(b)).mean()
    return losses, accuracy, (counted & ~positive).sum(-1).mean()
