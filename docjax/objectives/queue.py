"""InfoNCE that uses the documents of earlier batches as extra negatives."""

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
    """`infonce` with view 1 of the last `batches` batches as extra negatives.

    Cross-batch memory (Wang et al., 2020, section 3.2; the queue of He et al., 2020,
    without a momentum encoder): the parameters of earlier steps made the earlier
    vectors, and no gradient flows to them. Earlier vectors need no activations, so a
    single device trains with the negatives of many devices.

    Relations are known within a batch only: a related document of an earlier batch,
    and the same document at the turn of an epoch, count as negatives.

    Attributes:
      batches: the number of earlier batches in the queue.
      similarity, temperature, symmetric: of `infonce`. In the direction from view 1 to
        view 0 the documents of the current batch are the only candidates.
    """

    batches: int = 8
    similarity: str = "dot"
    temperature: float = 1.0
    symmetric: bool = True

    def __post_init__(self) -> None:
        if self.batches < 1:
            raise UserError(
                f"queue has batches {self.batches}: give at least 1, or use "
                "docjax.objectives.infonce.infonce"
            )

    def begin(self, examples: int, width: int) -> Memory:
        """An empty memory for batches of `examples` vectors of `width` numbers."""
        vectors = jnp.zeros((self.batches, examples, width))
        return Memory(vectors, jnp.zeros([], jnp.int32))

    def __call__(
        self, vectors: Float[Array, "v b d"], targets: Targets, memory: Memory
    ) -> tuple[Float[Array, ""], Metrics, Memory]:
        """The loss, the metrics of `infonce`, and the memory for the next batch.

        Raises:
          UserError: as `infonce`.
        """
        all_views = jnp.concatenate([vectors.astype(jnp.float32), memory.vectors])
        loss, metrics = infonce(
            all_views,
            targets._replace(related=_left_out(len(vectors), targets, memory)),
            similarity=self.similarity,
            temperature=self.temperature,
            symmetric=self.symmetric,
        )
        newest = jax.lax.stop_gradient(all_views[1:2])
        kept = jnp.concatenate([newest, memory.vectors])[: self.batches]
        filled = jnp.minimum(memory.filled + 1, self.batches)
        return loss, metrics, Memory(kept, filled)


def _left_out(views: int, targets: Targets, memory: Memory) -> jax.Array:
    """The relation mask [b m]; it also marks batches that are not remembered yet."""
    batches, b, _ = memory.vectors.shape
    related = targets.related
    if related is None:
        related = jnp.zeros((b, b), bool)
    current = jnp.tile(related, (1, (views - 1) * b // related.shape[1]))
    missing = jnp.repeat(jnp.arange(batches) >= memory.filled, b)
    missing = jnp.broadcast_to(missing, (b, batches * b))
    return jnp.concatenate([current, missing], axis=1)
