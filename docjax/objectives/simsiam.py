"""SimSiam: predict the other view's vector; no negatives.

Chen and He, "Exploring Simple Siamese Representation Learning", 2021; DECA, Eq. 5.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from docjax.errors import UserError
from docjax.kernels import unit
from docjax.types import Targets


def simsiam(
    vectors: Float[Array, "v b d"],
    targets: Targets,
    *,
    literal: bool = False,
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """The mean negative cosine of each view's prediction and the other view.

    Args:
      vectors: the two views, then their predictions, as the head
        `docjax.encoders.pooling.Predictor` gives them: v = 4.
      targets: not used.
      literal: stops the gradient of the predictions, as DECA's Eq. 5 has it: then the
        predictor is never trained. Otherwise of the vectors, as SimSiam has it.

    Returns:
      The loss, in [-1, 1], and `spread`: the mean standard deviation of the vectors,
      scaled to length 1, times the root of d; near 1 for vectors in all directions, 0
      when they have collapsed to one.
    """
    del targets
    if len(vectors) != 4:
        raise UserError(
            f"simsiam reads 2 views and their predictions, not {len(vectors)} arrays: "
            "set encoder.head to docjax.encoders.pooling.Predictor, and views that "
            "give 2"
        )
    left, right, left_said, right_said = vectors.astype(jnp.float32)
    stop = jax.lax.stop_gradient
    if literal:
        pairs = (left, stop(right_said)), (right, stop(left_said))
    else:
        pairs = (left_said, stop(right)), (right_said, stop(left))
    loss = -sum(_cosine(*pair).mean() for pair in pairs) / 2
    spread = unit(left).std(axis=0).mean() * jnp.sqrt(left.shape[-1])
    return loss, {"spread": spread}


def _cosine(
    left: Float[Array, "b d"], right: Float[Array, "b d"]
) -> Float[Array, " b"]:
    return (unit(left) * unit(right)).sum(-1)
