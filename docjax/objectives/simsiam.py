"""SimSiam: predict the other view's vector; no negatives.

Chen and He, "Exploring Simple Siamese Representation Learning", 2021; DECA, Eq. 5.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from docjax.errors import UserError
from docjax.kernels import unit
from docjax.objectives.facts import Metrics, loss
from docjax.types import Targets


@loss(similarity="cosine", reads_predictions=True)
def simsiam(
    vectors: Float[Array, "v b d"], targets: Targets, *, literal: bool = False
) -> tuple[Float[Array, ""], Metrics]:
    """The mean negative cosine of each view's prediction and the other view.

    Args:
      vectors: the two views, then their predictions, from the head
        `docjax.encoders.pooling.Predictor`: v = 4.
      targets: not used.
      literal: True stops the gradient at the predictions, as in DECA's Eq. 5, so the
        predictor is never trained. False stops the gradient at the vectors (SimSiam).

    Returns:
      The loss, in [-1, 1], and `spread`: the mean standard deviation of the vectors,
      scaled to length 1, times the root of d. `spread` is near 1 for vectors in all
      directions and 0 if all vectors have collapsed to the same vector.
    """
    del targets
    if len(vectors) != 4:
        raise UserError(
            f"simsiam reads 2 views and their predictions, not {len(vectors)} arrays: "
            "set encoder.head to docjax.encoders.pooling.Predictor, and views to a "
            "part that gives 2"
        )
    left, right, from_left, from_right = vectors.astype(jnp.float32)
    stop = jax.lax.stop_gradient
    if literal:
        pairs = (left, stop(from_right)), (right, stop(from_left))
    else:
        pairs = (from_left, stop(right)), (from_right, stop(left))
    cosine = lambda left, right: (unit(left) * unit(right)).sum(-1)
    loss = -sum(cosine(*pair).mean() for pair in pairs) / 2
    spread = unit(left).std(axis=0).mean() * jnp.sqrt(left.shape[-1])
    return loss, {"spread": spread}
