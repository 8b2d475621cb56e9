"""Cross-entropy of a classification head's logits, for end-to-end fine-tuning."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from docjax.objectives.facts import Metrics, loss
from docjax.types import Targets


@loss(similarity="cosine")
def cross_entropy(
    vectors: Float[Array, "v b c"], targets: Targets
) -> tuple[Float[Array, ""], Metrics]:
    """Mean cross-entropy over the labelled documents, and the batch's `accuracy`.

    Args:
      vectors: the head's logits of each document in each view.
      targets: the labels are class numbers, -1 for a document without label.
    """
    labels = targets.labels
    logits = vectors.astype(jnp.float32)
    real = labels >= 0
    target = jnp.maximum(labels, 0)
    picked = jnp.take_along_axis(
        jax.nn.log_softmax(logits), target[None, :, None], axis=-1
    )[..., 0]
    count = jnp.maximum(real.sum() * len(logits), 1)
    loss = -jnp.where(real, picked, 0).sum() / count
    correct = (logits.argmax(-1) == target) & real
    return loss, {"accuracy": correct.sum() / count}
