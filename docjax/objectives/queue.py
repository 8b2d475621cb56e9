"""InfoNCE that uses the documents of earlier batches as extra negatives."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from docjax.errors import UserError
from docjax.objectives.facts import Facts, Metrics
from docjax.objectives.infonce import infonce
from docjax.types import Targets


class Memory(NamedTuple):
    """The vectors of earlier batches, the latest first; `filled` batches are real."""

    vectors: Float[Array, "o b d"]
    filled: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class Queue:
    """`infonce` with view 1 of the last `batches` batches as extra negatives.

    Cross-batch memory (Wang et al., 2020, section 3.2): the parameters of earlier steps
    made the earlier vectors, and no gradient flows to them. Earlier vectors need no
    activations, so a single device trains with the negatives of many devices.

    With `momentum`, a second encoder reads view 1 (He et al., 2020, section 3.2): its
    parameters are a moving average of the trained ones, and get no gradient. Before
    each step they become momentum * average + (1 - momentum) * trained
    (`docjax.training.momentum`). With `in_batch` False the loss is He et al., Eq. 1, and
    Contriever's: the positive against the queue alone. Departure: the queue begins
    empty, not with random vectors.

    Relations are known within a batch only: a related document of an earlier batch,
    and the same document at the turn of an epoch, count as negatives.

    `similarity`, `temperature` and `symmetric` are those of `infonce`. In the direction
    from view 1 to view 0 the documents of the current batch are the only candidates.
    """

    batches: int = 8  # earlier batches in the queue
    similarity: str = "dot"
    temperature: float = 1.0
    symmetric: bool = True
    momentum: float | None = None  # None: the trained encoder reads view 1
    in_batch: bool = True  # other documents of the current batch are negatives too

    def __post_init__(self) -> None:
        if self.batches < 1:
            raise UserError(
                f"queue has batches {self.batches}: give at least 1, or use "
                "docjax.objectives.infonce.infonce"
            )
        if self.momentum is not None and not 0 <= self.momentum < 1:
            raise UserError(
                f"queue has momentum {self.momentum}: give a number from 0 to below 1, "
                "or None for the trained encoder"
            )
        if self.symmetric and (self.momentum is not None or not self.in_batch):
            raise UserError(
                "queue has symmetric True: view 1 of a momentum encoder, or without "
                "negatives of its batch, cannot be compared with view 0; set "
                "objective.symmetric to False"
            )

    @property
    def facts(self) -> Facts:
        return Facts(similarity=self.similarity)

    def begin(self, examples: int, width: int) -> Memory:
        """An empty memory for batches of `examples` vectors of `width` numbers."""
        vectors = jnp.zeros((self.batches, examples, width))
        return Memory(vectors, jnp.zeros([], jnp.int32))

    def __call__(
        self, vectors: Float[Array, "v b d"], targets: Targets, memory: Memory
    ) -> tuple[Float[Array, ""], Metrics, Memory]:
        """The loss, the metrics of `infonce`, and the memory for the next batch. Raises
        UserError as `infonce`."""
        all_views = jnp.concatenate([vectors.astype(jnp.float32), memory.vectors])
        related = targets.related
        if not self.in_batch:  # a row's own positive counts all the same
            related = jnp.ones((vectors.shape[1],) * 2, bool)
        left_out = _left_out(len(vectors), related, memory)
        loss, metrics = infonce(
            all_views,
            targets._replace(related=left_out),
            similarity=self.similarity,
            temperature=self.temperature,
            symmetric=self.symmetric,
        )
        newest = jax.lax.stop_gradient(all_views[1:2])
        kept = jnp.concatenate([newest, memory.vectors])[: self.batches]
        filled = jnp.minimum(memory.filled + 1, self.batches)
        return loss, metrics, Memory(kept, filled)


def _left_out(
    views: int, related: Bool[Array, "b _"] | None, memory: Memory
) -> Bool[Array, "b m"]:
    """The relation mask; it also marks batches that are not remembered yet."""
    batches, b, _ = memory.vectors.shape
    if related is None:
        related = jnp.zeros((b, b), bool)
    current = jnp.tile(related, (1, (views - 1) * b // related.shape[1]))
    missing = jnp.repeat(jnp.arange(batches) >= memory.filled, b)
    missing = jnp.broadcast_to(missing, (b, batches * b))
    return jnp.concatenate([current, missing], axis=1)
