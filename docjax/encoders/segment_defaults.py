"""What most segment encoders answer alike: the base of those of docjax."""

import flax.linen as nn

from docjax.errors import UserError


class SegmentDefaults(nn.Module):
    """A `docjax.types.SegmentEncoder`; subclasses add `vocabulary` and `__call__`."""

    has_towers = False
    masked_lm = False
    reads_prompts = False
    shows_attention = False
    averages_words = False
    words = 0
    place_rows = 0, 0

    @nn.nowrap
    def check_training(self, tokens: int) -> None:
        """Segments of any length can be trained."""

    @nn.nowrap
    def in_dtype(self, dtype: str) -> "SegmentDefaults":
        """This encoder, which computes in float32 alone."""
        if dtype != "float32":
            raise UserError(
                f"dtype {dtype!r}: {type(self).__name__} has float32 only; leave dtype "
                "out"
            )
        return self
