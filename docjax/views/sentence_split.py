"""A coin toss puts each unit into one of two views (SimLTE and DocSplit, 3.1)."""

import dataclasses

import numpy as np
from numpy.random import Generator

from docjax.types import DOCUMENT, Units
from docjax.views.ready import Ready


@dataclasses.dataclass(frozen=True)
class SentenceSplit(Ready):
    """Two disjoint views that keep all units in order; the coins are tossed again while
    a view is empty."""

    kinds = (DOCUMENT, DOCUMENT)
    least_units = 2

    def __call__(self, units: Units, generator: Generator) -> tuple[Units, ...]:
        heads = np.zeros(len(units), bool)
        while heads.all() or not heads.any():
            heads = generator.random(len(units)) < 0.5
        return units.take(np.flatnonzero(heads)), units.take(np.flatnonzero(~heads))
