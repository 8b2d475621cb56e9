"""One unit as a query against the rest (graph-roberta, retrieval pre-training)."""

import dataclasses

import numpy as np
from numpy.random import Generator

from docjax.types import DOCUMENT, QUERY, Units
from docjax.views.ready import Ready


@dataclasses.dataclass(frozen=True)
class OneAgainstRest(Ready):
    """Two views: one unit, read as a query, and the remaining units.

    The query is the first unit with probability `first`, otherwise a random unit.
    """

    first: float = 0.5
    kinds = (QUERY, DOCUMENT)
    least_units = 2

    def __call__(self, units: Units, generator: Generator) -> tuple[Units, ...]:
        rows = np.arange(len(units))
        chosen = 0
        if generator.random() >= self.first:
            chosen = generator.integers(len(units))
        return units.take(rows[[chosen]]), units.take(np.delete(rows, chosen))
