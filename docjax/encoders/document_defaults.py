"""What most document encoders answer alike: the base of those of docjax."""

from typing import Any

import flax.linen as nn


class DocumentDefaults(nn.Module):
    """A `docjax.types.DocumentEncoder` whose views do not attend to each other.

    Subclasses add the encoding of one view.
    """

    sparse = None
    attends = False
    joins_views = False
    parts = 1
    begins_as_mean = False
    unit_length = False
    words = 0
    share = 0.0
    words_alone = False
    chooses_share = False
    components = False
    nested = False

    def views(self, vectors, lengths, places, graphs, keys=None):
        del keys  # there is no dropout
        return self(vectors, lengths, places, graphs)

    @nn.nowrap
    def begin(self, params: Any) -> Any:
        return params

    @nn.nowrap
    def plain(self, params: Any) -> Any:
        return params

    @nn.nowrap
    def without_branch(self, params: Any) -> Any:
        return params

    @nn.nowrap
    def explains(self, params: Any) -> bool:
        del params
        return self.attends
