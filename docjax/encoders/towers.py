"""Several copies of a segment encoder, each with parameters of its own."""

import flax.linen as nn
import jax
from jaxtyping import Array, Float, Int

from docjax.errors import UserError
from docjax.types import QUERY

NAMES = {"kind": ("query", "document"), "view": ("view_0", "view_1")}


class Towers(nn.Module):
    """Two segment encoders of one form; their parameters lie under their names.

    by: "kind" reads queries with one and documents with the other; "view" reads the
    first view with one and the second with the other (Contrastive Tension), and
    everything else with the second.
    """

    has_towers = True
    masked_lm = False  # neither predicts tokens
    encoder: nn.Module
    by: str = "kind"

    def setup(self) -> None:
        if self.by not in NAMES:
            raise UserError(f"towers.by {self.by!r} is none of {', '.join(NAMES)}")
        for name in self.names:
            setattr(self, name, self.encoder.clone(parent=None))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the towers, in order: the keys of the parameters."""
        return NAMES[self.by]

    @property
    def vocabulary(self) -> int:
        return self.encoder.vocabulary

    def of_views(self, kinds: tuple[str, ...]) -> tuple[int, ...]:
        """The tower that reads each view of an example."""
        if self.by == "view":
            return tuple(min(view, 1) for view in range(len(kinds)))
        return tuple(self.of_kind(kind) for kind in kinds)

    def of_kind(self, kind: str) -> int:
        """The tower that reads queries or documents outside of training."""
        return 0 if self.by == "kind" and kind == QUERY else 1

    def __call__(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        places: Int[Array, "n 2"],
        keys: jax.Array | None = None,
        tower: int = 0,
    ) -> Float[Array, "n d"]:
        """Segment vectors, by the tower of that number."""
        read = [getattr(self, name) for name in self.names]
        if self.is_initializing():
            for other in read:
                other(tokens, lengths, places, keys)
        return read[tower](tokens, lengths, places, keys)
