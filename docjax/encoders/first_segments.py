"""Documents of several vectors, of which the best one answers a query."""

from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from docjax.encoders.document_defaults import DocumentDefaults
from docjax.errors import UserError
from docjax.kernels import EXACT
from docjax.types import QUERY


class FirstSegments(DocumentDefaults):
    """The vectors of the first segments of a document, side by side.

    A query has one vector, and its score is the highest similarity to one of the
    document's (ANCE MaxP; Xiong et al., 2021; with 1 segment, FirstP). The objective's
    `parts` is the same number.

    parts: the number of segments; the first one fills up a document that has fewer,
      which changes no maximum.
    projected: a linear layer and layer normalisation follow each vector, also a
      query's, as in ANCE.
    """

    exported_as = "FirstSegments"
    parts: int = 1
    projected: bool = False

    def setup(self) -> None:
        if self.parts < 1:
            raise UserError(f"encoder.document.parts {self.parts}: give at least 1")

    @nn.nowrap
    def check_run(self, config: Any) -> None:
        """Raises UserError if loss, examples or limits do not fit the vectors."""
        parts = config.objective.keywords.get("parts", 1)
        if parts != self.parts:
            raise UserError(
                f"encoder.document.parts is {self.parts} and objective.parts is {parts}: "
                "give the same number"
            )
        if self.parts > 1 and config.examples.built.kinds[0] != QUERY:
            raise UserError(
                f"encoder.document.parts {self.parts}: queries are compared with several "
                "vectors, so the examples need queries; give 1"
            )
        most = config.limits.inference_segments
        if most is None or most > self.parts:
            raise UserError(
                f"limits.inference_segments is {most}, but encoder.document reads "
                f"{self.parts} segments: give at most that number"
            )

    @nn.compact
    def _each(self, vectors: Float[Array, "*s d"]) -> Float[Array, "*s d"]:
        if not self.projected:
            return vectors
        width = vectors.shape[-1]
        dense = nn.Dense(width, precision=EXACT, name="dense")
        return nn.LayerNorm(1e-5, name="normalization")(dense(vectors))

    def __call__(
        self, vectors: Float[Array, "*s p d"], lengths: Int[Array, "*s p"], *unused: Any
    ) -> Float[Array, "*s f"]:
        """Document vectors, `parts` times as wide as a segment's."""
        numbers = jnp.arange(self.parts)
        numbers = jnp.where(numbers < vectors.shape[-2], numbers, 0)
        missing = jnp.take(lengths, numbers, axis=-1) == 0
        chosen = jnp.take(vectors, numbers, axis=-2)
        chosen = jnp.where(missing[..., None], vectors[..., :1, :], chosen)
        each = self._each(chosen)
        return each.reshape(*each.shape[:-2], -1)

    def query(self, vectors: Float[Array, "*s d"]) -> Float[Array, "*s d"]:
        return self._each(vectors)
