"""Random halves of a document's units (graph-roberta, Eq. 4), or two sections."""

import dataclasses

import numpy as np

from docjax.errors import UserError
from docjax.types import DOCUMENT, Units
from docjax.views.ready import Ready


@dataclasses.dataclass(frozen=True)
class Halves(Ready):
    """Two views: a uniformly random half (rounded down) and the rest, in order.

    Attributes:
      cut: training reads a document of one unit of at least this number of tokens as two
        units (`docjax/data/halved.py`), and takes a shorter one for both views. None:
        documents of one unit are left out.
      sections: the views of a document of several sections are two of them, drawn anew
        in every epoch.
    """

    cut: int | None = None
    sections: bool = False

    kinds = (DOCUMENT, DOCUMENT)

    def __post_init__(self) -> None:
        if self.cut is not None and self.cut < 2:
            raise UserError(f"views.cut {self.cut}: give at least 2 tokens, or None")

    @property
    def least_units(self) -> int:
        """Documents with fewer units are left out."""
        return 2 if self.cut is None else 1

    def __call__(
        self, units: Units, generator: np.random.Generator
    ) -> tuple[Units, ...]:
        if len(units) == 1:
            return units, units
        numbers = np.unique(units.sections)
        if self.sections and len(numbers) > 1:
            one, other = generator.choice(numbers, 2, replace=False)
            return (
                units.take(np.flatnonzero(units.sections == one)),
                units.take(np.flatnonzero(units.sections == other)),
            )
        order = generator.permutation(len(units))
        half = len(units) // 2
        return units.take(np.sort(order[:half])), units.take(np.sort(order[half:]))
