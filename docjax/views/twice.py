"""The same document twice: only dropout tells the two views apart (SimCSE)."""

import dataclasses
from typing import Any

from numpy.random import Generator

from docjax.errors import UserError
from docjax.types import DOCUMENT, Units
from docjax.views.ready import Ready


@dataclasses.dataclass(frozen=True)
class Twice(Ready):
    """Two views: all units, and all units again (Gao et al., 2021, section 3.1).

    Dropout masks belong to rows of a batch. Without dropout both views are the same.
    """

    kinds = (DOCUMENT, DOCUMENT)
    least_units = 1

    def check_run(self, config: Any) -> None:
        """Raises UserError for equal views, which nothing would tell apart."""
        segment = config.encoder.built.segment
        rates = [getattr(segment, f"{kind}dropout", 0) for kind in ("", "attention_")]
        if not segment.has_towers and not any(rates):
            raise UserError(
                "views docjax.views.twice.Twice differ by dropout alone, but "
                "encoder.segment.dropout is 0: give 0.1, or other views"
            )

    def __call__(self, units: Units, generator: Generator) -> tuple[Units, ...]:
        return units, units
