"""Masked language modelling: predict tokens that were hidden from the encoder.

Devlin et al. 2019, section 3.1; SimLTE and DocSplit add this loss to a contrastive
loss. `data/masking.py` draws the hidden tokens; the segment encoder computes the loss.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from docjax.errors import UserError


@dataclasses.dataclass(frozen=True)
class MaskedLM:
    """The mean cross-entropy of hidden tokens, added to a loss of views' vectors."""

    contrastive: Callable | None = None  # a loss of vectors, or None for tokens alone
    weight: float = 1.0  # of the token loss; the loss of vectors has weight 1
    rate: float = 0.15  # the share of a segment's tokens that are predicted

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1 or self.weight < 0:
            raise UserError(
                f"masked_lm has rate {self.rate} and weight {self.weight}: set a rate "
                "above 0 and below 1, and a weight of at least 0"
            )
        if self.contrastive is None and self.weight == 0:
            raise UserError(
                "masked_lm has weight 0 and no other loss: nothing would be trained; "
                "set objective.weight above 0"
            )

    def check_run(self, config: Any) -> None:
        """Raises UserError for a segment encoder that cannot learn masked tokens."""
        encoder = config.encoder.built
        if encoder.segment_is_frozen:
            raise UserError(
                f"objective masked_lm trains the segment encoder, but encoder.frozen "
                f"{encoder.frozen!r} freezes it: leave out masked_lm or encoder.frozen"
            )
        if not encoder.segment.masked_lm:
            raise UserError(
                "objective masked_lm needs an encoder that predicts tokens: give "
                "docjax.encoders.transformer.Transformer, and set "
                "--config.encoder.segment.masked_lm to True"
            )
