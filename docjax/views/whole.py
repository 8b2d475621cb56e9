"""The document itself as its only view: for labels, pairs and queries."""

import dataclasses

from numpy.random import Generator

from docjax.types import DOCUMENT, Units
from docjax.views.ready import Ready


@dataclasses.dataclass(frozen=True)
class Whole(Ready):
    """One view: all units."""

    kinds = (DOCUMENT,)
    least_units = 1

    def __call__(self, units: Units, generator: Generator) -> tuple[Units, ...]:
        return (units,)
