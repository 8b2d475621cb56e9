"""Random halves of a document's segments (graph-roberta, Eq. 4)."""

import dataclasses

import numpy as np

from docjax.types import Segments


@dataclasses.dataclass(frozen=True)
class Halves:
    """Two views: a uniformly random half (rounded down) and the rest, in order."""

    count = 2
    queries = ()
    least_segments = 2

    def __call__(
        self, segments: Segments, generator: np.random.Generator
    ) -> tuple[Segments, ...]:
        order = generator.permutation(len(segments))
        half = len(segments) // 2
        return (
            segments.take(np.sort(order[:half])),
            segments.take(np.sort(order[half:])),
        )
