"""One segment as a query against the rest (graph-roberta, retrieval pre-training)."""

import dataclasses

import numpy as np

from docjax.types import Segments


@dataclasses.dataclass(frozen=True)
class OneAgainstRest:
    """Two views: one segment, read as a query, and the others.

    With probability `first` the first segment is taken, otherwise any one uniformly.
    """

    first: float = 0.5
    count = 2
    queries = (0,)
    least_segments = 2

    def __call__(
        self, segments: Segments, generator: np.random.Generator
    ) -> tuple[Segments, ...]:
        rows = np.arange(len(segments))
        one = 0
        if generator.random() >= self.first:
            one = generator.integers(len(segments))
        return segments.take(rows[[one]]), segments.take(np.delete(rows, one))
