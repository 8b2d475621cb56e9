"""Two views that share no text: two sections of a document, or its halves."""

import dataclasses

import numpy as np
from numpy.random import Generator

from docjax.errors import UserError
from docjax.types import DOCUMENT, Units
from docjax.views.halves import Halves
from docjax.views.ready import Ready
from docjax.views.sections import only_sections


@dataclasses.dataclass(frozen=True)
class TwoParts(Ready):
    """Two views, drawn anew in every epoch: random sections, or random halves.

    A document of several sections of at least `tokens` tokens gives two of these; any
    other gives random halves of its units. Training reads a document of one unit of at
    least `tokens` tokens as two units (`docjax/data/halved.py`). A shorter one, and one
    that is not halved, is both views.
    """

    tokens: int = 128

    kinds = (DOCUMENT, DOCUMENT)
    least_units = 1

    def __post_init__(self) -> None:
        if self.tokens < 2:
            raise UserError(f"views.tokens {self.tokens}: give at least 2 tokens")

    @property
    def halve_from(self) -> int:
        return self.tokens

    def __call__(self, units: Units, generator: Generator) -> tuple[Units, ...]:
        if len(units) == 1:
            return units, units
        sizes = np.bincount(units.sections, units.lengths)
        long = np.flatnonzero(sizes >= self.tokens)
        if len(long) < 2:
            return Halves()(units, generator)
        return only_sections(units, generator.choice(long, 2, replace=False))
