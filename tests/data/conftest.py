"""Documents as segments of tokens, no two of which are the same."""

from collections.abc import Callable

import numpy as np
import pytest

from docjax.types import Segments


def segments(*lengths: int, first: int = 1) -> Segments:
    """Segments of these lengths whose tokens count up from `first`."""
    return Segments(
        np.arange(first, first + sum(lengths), dtype=np.int32),
        np.cumsum([0, *lengths]),
        np.stack([np.arange(len(lengths)) // 2, np.arange(len(lengths)) % 2], 1),
        np.zeros((0, 2), np.int32),
    )


@pytest.fixture(scope="session")
def document() -> Callable[..., Segments]:
    """Makes a document of segments of the lengths that it is given."""
    return segments


@pytest.fixture(scope="session")
def documents() -> Callable[..., list[Segments]]:
    """Makes so many documents of 2 to 7 segments of 1 to 40 tokens."""

    def make(count: int, seed: int = 0) -> list[Segments]:
        generator, made, first = np.random.default_rng(seed), [], 1
        for _ in range(count):
            lengths = generator.integers(1, 41, generator.integers(2, 8))
            made.append(segments(*lengths, first=first))
            first += lengths.sum()
        return made

    return make
