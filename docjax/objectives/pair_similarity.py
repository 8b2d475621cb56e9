"""The cosine of two documents, trained to be the label of their pair.

Reimers and Gurevych, "Sentence-BERT", 2019, section 3; CoLDE, section 4.2 (the siamese
models, and the ablation without the contrastive loss).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from docjax.errors import UserError
from docjax.kernels import unit
from docjax.objectives.facts import Metrics, loss
from docjax.types import Targets


@loss(similarity="cosine", labelled_pairs=True)
def pair_similarity(
    vectors: Float[Array, "v b d"], targets: Targets, *, margin: float | None = None
) -> tuple[Float[Array, ""], Metrics]:
    """The mean loss of b labelled pairs of documents.

    Args:
      vectors: the two documents of each pair: v = 2.
      targets: the labels are 1 for a similar pair and 0 for any other pair, as
        `docjax.data.examples.Pairs(dissimilar=True)` gives them.
      margin: None: the squared difference of cosine and label. A number: 1 - cosine
        for a similar pair, and max(0, cosine - margin) for any other pair. CoLDE's
        ablation "w/o CL" has this loss; 0 is our choice of its margin.

    Returns:
      The loss, and the mean cosine of the similar and of the other pairs, 0 in a batch
      without such pairs.

    Raises:
      UserError: for another number of views, or a margin outside of [-1, 1].
    """
    _check(vectors.shape[0], margin)
    left, right = unit(vectors.astype(jnp.float32))
    cosines = (left * right).sum(-1)
    similar = targets.labels == 1
    if margin is None:
        losses = (cosines - similar) ** 2
    else:
        losses = jnp.where(similar, 1 - cosines, jnp.maximum(cosines - margin, 0))
    mean = lambda kind: jnp.where(kind, cosines, 0).sum() / jnp.maximum(kind.sum(), 1)
    return losses.mean(), {
        "similar_cosine": mean(similar),
        "dissimilar_cosine": mean(~similar),
    }


def _check(views: int, margin: float | None) -> None:
    if views != 2:
        raise UserError(
            f"pair_similarity compares 2 documents, not {views} views: set examples to "
            "docjax.data.examples.Pairs and views to docjax.views.whole.Whole"
        )
    if margin is not None and not -1 <= margin <= 1:
        raise UserError(
            f"pair_similarity has margin {margin}: a cosine is compared with it; give a "
            "number from -1 to 1, or None for the squared difference"
        )
