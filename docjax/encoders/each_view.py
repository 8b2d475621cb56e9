"""The base of document encoders that encode each view of an example separately."""

import flax.linen as nn


class EachViewAlone(nn.Module):
    """A `docjax.types.DocumentEncoder`; subclasses add the encoding of one view."""

    sparse = None
    attends = False
    joins_views = False
    parts = 1

    def views(self, vectors, lengths, places, graphs, keys=None):
        del keys  # there is no dropout
        return self(vectors, lengths, places, graphs)
