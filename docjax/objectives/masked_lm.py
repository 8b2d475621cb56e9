"""Masked language modelling: predict tokens that were hidden from the encoder.

Devlin et al. 2019, section 3.1; SimLTE and DocSplit add it to a contrastive loss. Which
tokens are hidden is drawn in `data/masking.py`; their loss is taken by the segment
encoder itself.
"""

import dataclasses
from collections.abc import Callable

from docjax.errors import UserError


@dataclasses.dataclass(frozen=True)
class MaskedLM:
    """The mean cross-entropy of hidden tokens, beside a loss of the views' vectors.

    Attributes:
      contrastive: `infonce` or another loss of vectors, or nothing: masked language
        modelling alone.
      weight: of the loss of tokens; that of vectors has weight 1.
      rate: the share of a segment's tokens that are predicted.
    """

    contrastive: Callable | None = None
    weight: float = 1.0
    rate: float = 0.15

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1 or self.weight < 0:
            raise UserError(
                f"masked_lm has rate {self.rate} and weight {self.weight}: the rate is a "
                "share above 0 and below 1, the weight at least 0"
            )
        if self.contrastive is None and self.weight == 0:
            raise UserError(
                "masked_lm has weight 0 and no other loss: nothing would be trained; "
                "set objective.weight above 0"
            )
