"""Two random crops of a piece of a document, with deleted tokens (Contriever)."""

import dataclasses

import numpy as np
from jaxtyping import Int
from numpy.random import Generator

from docjax.errors import UserError
from docjax.types import DOCUMENT, Units
from docjax.views.ready import Ready


@dataclasses.dataclass(frozen=True)
class Crops(Ready):
    """Two views: independent crops of one random span of the document's tokens.

    Izacard et al., 2022, section 3.1, as in the reference code: the length of a crop is a
    uniform share of the span, from `shortest` to `longest`, rounded down; its place is
    uniform; then each token is deleted with probability `deletion`. The crops may
    overlap. A crop has at least one token. A view is one unit, with the section in which
    the crop begins.
    """

    span: int = 256  # tokens; a shorter document is the span
    shortest: float = 0.05
    longest: float = 0.5
    deletion: float = 0.1
    kinds = (DOCUMENT, DOCUMENT)
    least_units = 1

    def __post_init__(self) -> None:
        if self.span < 1 or not 0 < self.shortest <= self.longest <= 1:
            raise UserError(
                f"crops have span {self.span}, shortest {self.shortest} and longest "
                f"{self.longest}: give a span of at least 1 token, and shares above 0 "
                "and at most 1 with shortest <= longest"
            )
        if not 0 <= self.deletion < 1:
            raise UserError(
                f"crops have deletion {self.deletion}: give a number from 0 to below 1"
            )

    def __call__(self, units: Units, generator: Generator) -> tuple[Units, ...]:
        size = min(self.span, len(units.tokens))
        start = int(generator.integers(len(units.tokens) - size + 1))
        return tuple(
            _unit(units, self._crop(start, size, generator)) for _ in self.kinds
        )

    def _crop(
        self, start: int, size: int, generator: Generator
    ) -> Int[np.ndarray, " y"]:
        """The places of the tokens of a crop of the span that begins at `start`."""
        length = max(int(size * generator.uniform(self.shortest, self.longest)), 1)
        length = min(length, size)  # a document may have no token
        start += int(generator.integers(size - length + 1))
        kept = generator.random(length) >= self.deletion
        if not kept.any():
            kept[:1] = True
        return start + np.flatnonzero(kept)


def _unit(units: Units, places: Int[np.ndarray, " y"]) -> Units:
    """The tokens at `places` as one unit."""
    first = places[0] if len(places) else 0
    of_unit = np.searchsorted(units.offsets, first, side="right") - 1
    row = slice(of_unit, of_unit + 1) if len(places) else slice(0, 1)
    return Units(
        units.tokens[places],
        np.array([0, len(places)], np.int64),
        units.sections[row],
        np.zeros((0, 2), np.int32),
        None if units.documents is None else units.documents[row],
    )
