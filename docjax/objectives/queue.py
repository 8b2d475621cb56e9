"""InfoNCE with the documents of earlier batches as further negatives."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from docjax.errors import UserError
from docjax.objectives.infonce import infonce
from docjax.types import Targets

Metrics = dict[str, Float[Array, ""]]


class Memory(NamedTuple):
    """The vectors of earlier batches, the latest first; `filled` batches are real."""

    vectors: Float[Array, "o b d"]
    filled: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class Queue:
    """`infonce`, whose rows are also told from view 1 of the last `batches` batches.

    Cross-batch memory (Wang et al., 2020, section 3.2; the queue of He et al., 2020,
    without a momentum encoder): the earlier vectors are those of the parameters of
    their time, and no gradient flows to them. They cost no memory of activations, so
    that a single device trains with the negatives of many.

    Attributes:
      batches: how many earlier batches are remembered.
      similarity, temperature, symmetric: of `infonce`. In the direction from view 1 to
        view 0 the batch's own documents are the only candidates.
    """

    batches: int = 8
    similarity: str = "dot"
    temperature: float = 1.0
    symmetric: bool = True

    def __post_init__(self) -> None:
        if self.batches < 1:
            raise UserError(
                f"queue has batches {self.batches}: give at least 1, or take "
                "docjax.objectives.infonce.infonce"
            )

    def begin(self, examples: int, width: int) -> Memory:
        """An empty memory for batches of so many examples."""
        vectors = jnp.zeros((self.batches, examples, width))
        return Memory(vectors, jnp.zeros([], jnp.int32))

    def __call__(
        self, vectors: Float[Array, "v b d"], targets: Targets, memory: Memory
    ) -> tuple[Float[Array, ""], Metrics, Memory]:
        """The loss, the metrics of `infonce`, and the memory for the next batch.

        Raises:
          UserError: as `infonce`.
        """
        everything = jnp.concatenate([vectors.astype(jnp.float32), memory.vectors])
        loss, metrics = infonce(
            everything,
            targets._replace(related=_left_out(len(vectors), targets, memory)),
            similarity=self.similarity,
            temperature=self.temperature,
            symmetric=self.symmetric,
        )
        newest = jax.lax.stop_gradient(everything[1:2])
        kept = jnp.concatenate([newest, memory.vectors])[: self.batches]
        filled = jnp.minimum(memory.filled + 1, self.batches)
        return loss, metrics, Memory(kept, filled)


def _left_out(views: int, targets: Targets, memory: Memory) -> jax.Array:
    """The relation mask [b m] with the batches that are not there yet."""
    batches, b, _ = memory.vectors.shape
    related = targets.related
    if related is None:
        related = jnp.zeros((b, b), bool)
    own = jnp.tile(related, (1, (views - 1) * b // related.shape[1]))
    missing = jnp.repeat(jnp.arange(batches) >= memory.filled, b)
    return jnp.concatenate([own, jnp.broadcast_to(missing, (b, batches * b))], axis=1)
