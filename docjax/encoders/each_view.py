"""The base of document encoders that encode each view of an example separately."""

import flax.linen as nn
from jaxtyping import Array, Float, Int, Key

from docjax.types import Graphs


class EachViewAlone(nn.Module):
    """A `docjax.types.DocumentEncoder`; subclasses add the encoding of one view."""

    sparse = None
    attends = False
    joins_views = False
    parts = 1

    def views(
        self,
        vectors: Float[Array, "v b p d"],
        lengths: Int[Array, "v b p"],
        places: Int[Array, "v b p 2"],
        graphs: Graphs,
        keys: Key[Array, " b"] | None = None,
    ) -> Float[Array, "v b f"]:
        """The vector of every view; there is no dropout, so `keys` are not used."""
        del keys
        return self(vectors, lengths, places, graphs)
