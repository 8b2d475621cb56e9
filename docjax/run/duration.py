"""How long a run will take: said before a frozen encoder reads the documents.

`docjax/training/plan.py` says more, for any config, with `--mode=plan`.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from absl import logging

from docjax.types import Segments

EXCERPT = 128  # tokens of an excerpt that judges
SAMPLE = 12_000  # tokens that are read twice: to compile, and to measure the speed
# Rough seconds on 2 cores: docs/log has how far they were off.
COMPILING = 20.0  # steps, judgement and report
A_DOCUMENT = 0.002  # steps, judgement, baselines and report
A_CELL = 0.0001  # a document and a class: k-means, probes and their baselines


def log_duration(
    read: Callable[[Sequence[Segments]], Any],
    sample: Sequence[Segments],
    *,
    tokens: int,
    again: int,
    processes: int,
    documents: int,
    compared: int,
    judges: int,
    classes: int,
) -> None:
    """Logs about how long the rest of a judged run takes, to read and in all.

    Args:
      read: the frozen encoder.
      sample: documents of about SAMPLE tokens, drawn from those that are read.
      tokens: those of `documents` that the `processes` read before the first step.
      again: those that the report reads.
      compared: documents whose vectors steps, tasks and baselines read.
      judges: the documents that excerpts are taken from.
    """
    a_token = seconds_a_token(read, sample)
    reading = tokens * a_token / processes
    judged = 4 * EXCERPT * judges * a_token  # two excerpts, read twice
    rest = (
        judged
        + again * a_token
        + COMPILING
        + compared * (A_DOCUMENT + A_CELL * classes)
    )
    logging.info(
        "the run takes about %s: the frozen encoder reads %s tokens of %s documents in "
        "%s; training, judgement, evaluation and report take %s",
        shown(reading + rest),
        f"{tokens:,}",
        f"{documents:,}",
        shown(reading),
        shown(rest),
    )


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
