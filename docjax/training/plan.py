"""What a run will read, hold and take, said before it trains: `--mode=plan`.

The plan makes the corpus and the trainer of the run, reads the first batches, compiles
the programs of a step and times a few real steps. `plan_memory.py` counts the bytes.
The time is that of the steps and of what a frozen encoder reads before them.
"""

import collections
import dataclasses
import functools
import logging
import time
from collections.abc import Callable
from typing import Any

import jax

from docjax.errors import UserError
from docjax.run import duration
from docjax.run.parameters import start_params
from docjax.run.prepared import Prepared
from docjax.training import sharding
from docjax.training.plan_memory import memory_of
from docjax.types import Trainer

logger = logging.getLogger(__name__)

BATCHES = 8  # the first batches, which are read and counted
STEPS = 3  # of them, that are timed
CALLS = 8  # micro-batches of a timed step: a larger batch is timed in part
Plan = dict[str, Any]


def plan(
    prepared: Prepared,
    mesh: jax.sharding.Mesh,
    trainer_of: Callable[[Prepared], Trainer],
) -> Plan:
    """Counts, bytes and seconds of a run. Writes files into `prepared.run` only.

    The run may have vectors of any value where training reads them.

    Raises:
      UserError: for what training would refuse before its first step.
    """
    logger.info("making the trainer")
    trainer = trainer_of(prepared)
    params = start_params(prepared.config, prepared.encoder, prepared.run)
    logger.info("counting what %d steps read", min(BATCHES, trainer.steps))
    counts = _counts(trainer)
    logger.info("compiling and timing %d steps", min(STEPS, trainer.steps))
    positions = counts["positions_a_step"]
    try:
        step = _timed(_smaller(prepared, trainer, trainer_of), params, positions)
    except UserError:  # an objective may need more documents than the smaller batch has
        step = _timed(trainer, params, positions)
    reading = _seconds_of_reading(prepared, params, mesh)
    logger.info("compiling the programs of a step to count their bytes")
    return {
        **counts,
        "memory": memory_of(trainer, params, mesh),
        "seconds_a_step": step,
        "seconds": trainer.steps * step + reading,
    }


def _counts(trainer: Trainer) -> Plan:
    """What the first BATCHES steps read, on average."""
    steps = range(min(BATCHES, trainer.steps))
    sums: collections.Counter = collections.Counter()
    for step in steps:
        batch, rows = trainer.dataset[step]
        sums.update(trainer.measure(batch), documents=len(rows))
    computed, real, read = sums["computed"], sums["real"], sums["tokens"]
    return {
        "steps": trainer.steps,
        "epochs": trainer.steps / trainer.epoch_steps,
        "documents_a_step": sums["documents"] / len(steps),
        "tokens_a_step": read / len(steps),
        "positions_a_step": computed / len(steps),
        "padding": 1 - real / computed if computed else 0.0,
        "cut": sums["cut"] / max(sums["cut"] + read, 1),
        "counted_over_steps": len(steps),
        "masked_copies": _reads_masked_copies(trainer),
    }


def _reads_masked_copies(trainer: Any) -> bool:
    """Whether a step reads every segment once more, with some tokens masked."""
    if trainer.prepared.config.reads_words:
        return False
    return bool(trainer.batches.masking) and trainer.cache.objective is not None


def _seconds_of_reading(
    prepared: Prepared, params: Any, mesh: jax.sharding.Mesh
) -> float:
    """The seconds in which a frozen encoder reads the documents before the first step."""
    corpus = prepared.corpus
    if not corpus.vectors:
        return 0.0
    logger.info("timing how fast the encoder reads documents")
    tokens = corpus.sizes(corpus.rows_with_vectors).sum()
    if prepared.halved:
        tokens += prepared.halved.lengths.sum()
    cut = lambda row: dataclasses.replace(prepared.segments(corpus[row]), vectors=None)
    sample = duration.sampled(len(corpus), cut)
    read = functools.partial(prepared.model(params, mesh).inference().segments, params)
    return float(tokens) * duration.seconds_a_token(read, sample)


def _smaller(
    prepared: Prepared, trainer: Any, trainer_of: Callable[[Prepared], Trainer]
) -> Any:
    """A trainer whose step has about CALLS micro-batches, if a step of the run has
    more: the seconds of a step grow with them."""
    if prepared.config.reads_words or prepared.corpus.vectors:
        return trainer
    config, devices = prepared.config, trainer.mesh.size
    segments = trainer.batches.segments() / config.batch  # of an example
    batch = round(CALLS * config.microbatch / segments)
    batch = max(batch // devices * devices, devices)
    if batch >= config.batch:
        return trainer
    config = dataclasses.replace(config, batch=batch)
    smaller: Any = trainer_of(dataclasses.replace(prepared, config=config))
    smaller.keep(trainer.cache.keep)  # not what fits with the smaller batch
    return smaller


def _timed(trainer: Any, params: Any, positions: float) -> float:
    """The seconds of a step that computes `positions`, from the trainer's first steps."""
    host, device, computed = 0.0, 0.0, 0
    state = sharding.replicate(trainer.begin(params), trainer.mesh)
    steps = min(STEPS, trainer.steps)
    for number in range(steps):
        started = time.perf_counter()
        batch, _ = trainer.dataset[number]
        host += time.perf_counter() - started
        batch, read = trainer.put(batch), trainer.measure(batch)
        computed += read["computed"]
        state, _ = _timed_step(trainer, state, batch)  # compiles
        state, seconds = _timed_step(trainer, state, batch)
        device += seconds
    whole = positions * steps / computed if computed else 1.0
    return max(host, device) / steps * whole  # the host makes the next batch meanwhile


def _timed_step(trainer: Trainer, state: Any, batch: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    state, metrics = trainer.step(state, batch, jax.random.key(0))
    jax.block_until_ready((state.params, metrics))
    return state, time.perf_counter() - started
