"""Groups of a document's sections as views (CoLDE, 3.1)."""

import dataclasses

import numpy as np

from docjax.errors import UserError
from docjax.types import DOCUMENT, Units
from docjax.views.ready import Ready


@dataclasses.dataclass(frozen=True)
class Sections(Ready):
    """`count` views: consecutive sections in groups of about equal numbers of tokens.

    A document with fewer sections than views is cut between units instead. The units of
    view i are in section i: a trained model knows no other section numbers.
    """

    count: int = 2

    def __post_init__(self) -> None:
        if not 2 <= self.count <= 5:
            raise UserError(f"views.count {self.count}: give 2 to 5 sections, as CoLDE")

    @property
    def kinds(self) -> tuple[str, ...]:
        return (DOCUMENT,) * self.count

    @property
    def least_units(self) -> int:
        return self.count

    def __call__(
        self, units: Units, generator: np.random.Generator
    ) -> tuple[Units, ...]:
        del generator
        starts = np.flatnonzero(np.diff(units.sections, prepend=-1))
        if len(starts) < self.count:
            starts = np.arange(len(units))
        cuts = [*balanced(units.offsets[starts], int(units.offsets[-1]), self.count)]
        bounds = [*starts[cuts], len(units)]
        return tuple(
            self._renumbered(units.take(np.arange(bounds[i], bounds[i + 1])), i)
            for i in range(self.count)
        )

    def _renumbered(self, units: Units, section: int) -> Units:
        sections = np.full(len(units), section, np.int32)
        no_edges = np.zeros((0, 2), np.int32)
        return dataclasses.replace(units, sections=sections, edges=no_edges)


def balanced(starts: np.ndarray, total: int, groups: int) -> list[int]:
    """The first piece of each group, so that a group has about total / groups tokens.

    Args:
      starts: the token at which each piece begins, ascending; at least `groups` pieces.
    """
    chosen = [0]
    for number in range(1, groups):
        least, most = chosen[-1] + 1, len(starts) - (groups - number)
        wanted = total * number / groups
        near = np.abs(starts[least : most + 1] - wanted).argmin()
        chosen.append(least + int(near))
    return chosen
