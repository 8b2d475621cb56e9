"""How long a run will take: said before a frozen encoder reads the documents.

An even sample is read twice: first to compile, then to measure the speed.
"""

import time
from typing import Any

import numpy as np
from absl import logging

from docjax.model.inference import Inference
from docjax.run.half_scores import EXCERPT
from docjax.run.prepare import Prepared

SAMPLE = 12_000  # tokens that are read twice
# Seconds on 2 cores of 2023; chosen on corpora of 367 to 11,429 documents.
COMPILING = 20.0  # steps, judgement and report
A_DOCUMENT = 0.002  # steps, judgement, baselines and report
A_CELL = 0.0001  # a document and a class: k-means, probes and their baselines


def log_duration(prepared: Prepared, inference: Inference, params: Any) -> None:
    """Logs about how long the rest of the run takes, to read and in all."""
    corpus = prepared.corpus
    total = int(corpus.lengths.sum())
    rate = _seconds_a_token(prepared, inference, params)
    reading = total * rate
    judged = 4 * EXCERPT * len(prepared.judges) * rate  # two excerpts, twice
    cells = len(corpus) * len(prepared.classes)
    rest = judged + COMPILING + A_DOCUMENT * len(corpus) + A_CELL * cells
    logging.info(
        "the run takes about %s: the frozen encoder reads %s tokens of %s documents in "
        "%s; training, judgement, evaluation and report take %s",
        _shown(reading + rest),
        f"{total:,}",
        f"{len(corpus):,}",
        _shown(reading),
        _shown(rest),
    )


def _seconds_a_token(prepared: Prepared, inference: Inference, params: Any) -> float:
    documents, tokens = [], 0
    rows = np.random.default_rng(0).permutation(len(prepared.corpus))
    for row in rows.tolist():
        if tokens >= SAMPLE:
            break
        documents.append(prepared.segments(prepared.corpus[row]))
        tokens += int(documents[-1].lengths.sum())
    inference.segments(params, documents)
    started = time.perf_counter()
    inference.segments(params, documents)
    return (time.perf_counter() - started) / max(tokens, 1)


def _shown(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
