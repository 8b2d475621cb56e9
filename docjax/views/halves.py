"""Random halves of a document's units (graph-roberta, Eq. 4)."""

import dataclasses

import numpy as np
from numpy.random import Generator

from docjax.types import DOCUMENT, Units
from docjax.views.ready import Ready


@dataclasses.dataclass(frozen=True)
class Halves(Ready):
    """Two views: a uniformly random half (rounded down) and the rest, in order."""

    kinds = (DOCUMENT, DOCUMENT)
    least_units = 2

    def __call__(self, units: Units, generator: Generator) -> tuple[Units, ...]:
        order = generator.permutation(len(units))
        half = len(units) // 2
        return units.take(np.sort(order[:half])), units.take(np.sort(order[half:]))
