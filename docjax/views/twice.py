"""The same document twice: only dropout tells the two views apart (SimCSE)."""

import dataclasses

import numpy as np

from docjax.types import DOCUMENT, Units
from docjax.views.ready import Ready


@dataclasses.dataclass(frozen=True)
class Twice(Ready):
    """Two views: all units, and all units again (Gao et al., 2021, section 3.1).

    The views are different rows of a batch, and dropout masks belong to rows
    (`docjax.training.gradient_cache`). Without dropout both views have the same vector.
    """

    kinds = (DOCUMENT, DOCUMENT)
    least_units = 1

    def __call__(
        self, units: Units, generator: np.random.Generator
    ) -> tuple[Units, ...]:
        del generator
        return units, units
