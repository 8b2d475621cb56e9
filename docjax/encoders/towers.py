"""Two copies of a segment encoder, each with its own parameters."""

from typing import Any

import flax.linen as nn
import jax
from jaxtyping import Array, Float, Int

from docjax.encoders.segment_defaults import SegmentDefaults
from docjax.errors import UserError
from docjax.types import QUERY

NAMES = {"kind": ("query", "document"), "view": ("view_0", "view_1")}


class Towers(SegmentDefaults):
    """Two segment encoders of the same architecture, each with its own parameters.

    by: "kind" has one tower for queries and one for documents. "view" has the first
    tower for the first view, and the second tower for everything else (Contrastive
    Tension); `read_by_inference` leaves the first tower out.
    """

    has_towers = True  # no tower predicts tokens
    encoder: nn.Module
    by: str = "kind"

    def setup(self) -> None:
        if self.by not in NAMES:
            raise UserError(f"towers.by {self.by!r} is not one of {', '.join(NAMES)}")
        for name in self.names:
            setattr(self, name, self.encoder.clone(parent=None))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the towers, in order; they are keys of the parameters."""
        return NAMES[self.by]

    @property
    def vocabulary(self) -> int:
        return self.encoder.vocabulary

    @property
    def reads_prompts(self) -> bool:
        return self.encoder.reads_prompts

    @nn.nowrap
    def check_training(self, tokens: int) -> None:
        self.encoder.check_training(tokens)

    @nn.nowrap
    def in_dtype(self, dtype: str) -> "Towers":
        return self.clone(encoder=self.encoder.in_dtype(dtype))

    @property
    def place_rows(self) -> tuple[int, int]:
        return self.encoder.place_rows

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
        """Segment vectors, from tower number `tower`."""
        encoders = [getattr(self, name) for name in self.names]
        if self.is_initializing():
            for encoder in encoders:
                encoder(tokens, lengths, places, keys)
        return encoders[tower](tokens, lengths, places, keys)


def read_by_inference(encoder: Any, params: Any) -> tuple[Any, Any]:
    """A document encoder and its parameters without the copy that only training reads:
    of two copies by view the second one stays, and two towers by kind both stay."""
    segment = encoder.segment
    if not (segment.has_towers and segment.by == "view"):
        return encoder, params
    single = params["segment"][segment.names[1]]
    return encoder.clone(segment=segment.encoder), params | {"segment": single}
