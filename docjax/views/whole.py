"""The document itself as its only view, for supervised objectives."""

import dataclasses

import numpy as np

from docjax.types import Segments


@dataclasses.dataclass(frozen=True)
class Whole:
    """One view: all segments."""

    count = 1
    queries = ()
    least_segments = 1

    def __call__(
        self, segments: Segments, generator: np.random.Generator
    ) -> tuple[Segments, ...]:
        del generator
        return (segments,)
