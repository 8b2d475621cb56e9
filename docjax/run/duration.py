"""How long an encoder takes to read documents: measured on a sample."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from docjax.types import Segments

SAMPLE = 12_000  # tokens that are read twice: to compile, and to measure the speed


def sampled(count: int, cut: Callable[[int], Segments]) -> list[Segments]:
    """Documents of about SAMPLE tokens, drawn from `count`; `cut` reads one by number.

    The last one is cut after the segment that fills the sample.
    """
    sample, tokens = [], 0
    for row in np.random.default_rng(0).permutation(count).tolist():
        document = cut(row)
        before_each = tokens + np.cumsum(document.lengths) - document.lengths
        sample.append(document.first(int((before_each < SAMPLE).sum())))
        tokens += int(sample[-1].lengths.sum())
        if tokens >= SAMPLE:
            break
    return sample


def seconds_a_token(
    read: Callable[[Sequence[Segments]], Any], sample: Sequence[Segments]
) -> float:
    """The seconds that `read` takes for a token, compiled before."""
    read(sample)
    started = time.perf_counter()
    read(sample)
    tokens = sum(int(document.lengths.sum()) for document in sample)
    return (time.perf_counter() - started) / max(tokens, 1)


def shown(seconds: float) -> str:
    """Seconds, or minutes above 100 seconds."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
