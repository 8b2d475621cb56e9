"""Supervised contrastive loss: pulls views of the same or related documents together.

Khosla et al., "Supervised Contrastive Learning", 2020, Eq. 2; CoLDE, section 3.4.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from docjax.errors import UserError
from docjax.kernels import EXACT, unit
from docjax.objectives.facts import Metrics, loss
from docjax.types import Targets


def _check_examples(examples: Any, views: int, keywords: Mapping[str, Any]) -> None:
    """Raises UserError if the loss would compare nothing."""
    labels, count = examples.labels, len(examples)
    known, sizes = np.unique(labels[labels >= 0], return_counts=True)
    if keywords["by"] == "label":
        if len(known) == 1 and sizes[0] == count:
            raise UserError(
                f"objective.by is 'label', but all {count} training documents have the "
                "same label, so that no document is a negative: give documents of "
                "several labels, or --config.objective.by=document"
            )
        if sizes.max(initial=0) < 2:
            raise UserError(
                f"objective.by is 'label', but no two of {count} training documents have "
                "the same label: give labels, or --config.objective.by=document"
            )
        return
    if views == 1 and examples.related is None:
        raise UserError(
            f"no two of {count} training documents are related and each is one view, "
            "so that no view has a positive: give examples.related 'pairs' or 'links', "
            "objective.by 'label' with labels, or views of several sections"
        )


@loss(similarity="cosine", check_examples=_check_examples)
def supervised_contrastive(
    vectors: Float[Array, "v b d"],
    targets: Targets,
    *,
    temperature: float = 0.5,
    by: str = "document",
) -> tuple[Float[Array, ""], Metrics]:
    """The mean loss of all v b views: each view is an anchor against all other views.

    The positives of a view are the other views of its document, the views of related
    documents (`targets.related`) and, with `by` "label", the views of documents with
    the same label. The loss of a view is minus the mean log-softmax of its positives
    over all other views, by cosine. The mean leaves out views without positives.

    Returns:
      The loss, and `positives` (mean number per view) and `anchors` (the share of views
      that have positives).

    Raises:
      UserError: for an unknown `by`, a temperature that is not above 0, or a relation
        mask that is not [b b].
    """
    _check(temperature, by)
    v, b, d = vectors.shape
    flat = unit(vectors.astype(jnp.float32)).reshape(v * b, d)
    logits = jnp.matmul(flat, flat.T, precision=EXACT) / temperature
    not_self = ~jnp.eye(v * b, dtype=bool)
    positive = jnp.tile(_related(targets, b, by), (v, v)) & not_self
    shares = logits - jax.nn.logsumexp(logits, -1, where=not_self, keepdims=True)
    counts = positive.sum(-1)
    losses = -jnp.where(positive, shares, 0).sum(-1) / jnp.maximum(counts, 1)
    anchors = (counts > 0).sum()
    return losses.sum() / jnp.maximum(anchors, 1), {
        "positives": counts.mean(),
        "anchors": anchors / (v * b),
    }


def _related(targets: Targets, b: int, by: str) -> Bool[Array, "{b} {b}"]:
    """Which documents are related; every document is related to itself."""
    related = jnp.eye(b, dtype=bool)
    if targets.related is not None:
        if tuple(targets.related.shape) != (b, b):
            raise UserError(
                f"targets.related has shape {list(targets.related.shape)}: "
                f"supervised_contrastive over {b} documents needs [{b}, {b}]"
            )
        related |= targets.related | targets.related.T
    if by == "label":
        labels = targets.labels
        related |= (labels[:, None] == labels[None]) & (labels >= 0)[:, None]
    return related


def _check(temperature: float, by: str) -> None:
    if temperature <= 0:
        raise UserError(
            f"supervised_contrastive has temperature {temperature}: give a number "
            "above 0"
        )
    if by not in ("document", "label"):
        raise UserError(
            f"supervised_contrastive takes by 'document' or 'label', not {by!r}"
        )
