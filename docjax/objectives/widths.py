"""Losses of vectors that may be cut to their first numbers.

Matryoshka representations (Kusupati et al., 2022): the loss is the mean of the losses
of the vectors cut to several widths and of the whole vectors.
"""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from docjax.errors import UserError
from docjax.objectives.facts import Metrics

Loss = Callable[[Float[Array, "v b d"]], tuple[Float[Array, ""], Metrics]]


def over_widths(
    loss: Loss, vectors: Float[Array, "v b d"], widths: Sequence[int]
) -> tuple[Float[Array, ""], Metrics]:
    """The mean loss over `widths` and the whole, and the metrics of the whole. Raises
    UserError for a width that cuts nothing."""
    full = vectors.shape[-1]
    wrong = [width for width in widths if not 0 < width < full]
    if wrong:
        raise UserError(
            f"objective.widths has {wrong[0]}: the vectors have {full} numbers, give "
            "smaller numbers above 0"
        )
    vectors = vectors.astype(jnp.float32)
    found = [loss(vectors[..., :width]) for width in (*widths, full)]
    return sum(value for value, _ in found) / len(found), found[-1][1]
