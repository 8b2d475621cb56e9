"""What a run will read, hold and take, said before it trains: `--mode=plan`.

The plan makes the corpus and the trainer of the run, reads the first batches, compiles
the programs of a step and times a few real steps. `plan_memory.py` counts the bytes.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from absl import logging

from docjax.data import splits
from docjax.errors import UserError
from docjax.run import duration
from docjax.run.fields import RunConfig
from docjax.run.parameters import start_params
from docjax.run.prepared import Prepared
from docjax.training import sharding
from docjax.training.plan_memory import memory_of
from docjax.types import Trainer

BATCHES = 8  # the first batches, which are read and counted
STEPS = 3  # of them, that are timed
MEASURED = 1_000  # documents whose mean length counts
CALLS = 8  # micro-batches of a timed step: a larger batch is timed in part
Plan = dict[str, Any]


def plan(
    prepared: Prepared,
    mesh: jax.sharding.Mesh,
    trainer_of: Callable[[Prepared], Trainer],
    asked: Callable[[Any, str], int],
) -> Plan:
    """Counts, bytes and seconds of a run. Writes files into `prepared.run` only.

    Args:
      prepared: the run, with vectors of any value where training reads them.
      trainer_of: makes the trainer of a run.
      asked: of parameters and a part: how many documents tasks read; raises if a task
        lacks data.

    Raises:
      UserError: for what training would refuse before its first step.
    """
    logging.info("making the trainer")
    trainer = trainer_of(prepared)
    params = start_params(prepared.config, prepared.encoder, prepared.run)
    parts = "validation" if prepared.config.splits.validation else "test", "test"
    scored = [asked(params, part) for part in parts]
    logging.info("counting what %d steps read", min(BATCHES, trainer.steps))
    counts = _counts(trainer)
    logging.info("compiling and timing %d steps", min(STEPS, trainer.steps))
    timed, seconds = _timed(prepared, trainer, trainer_of, params, counts)
    logging.info("timing how fast the encoder reads documents")
    a_document = _seconds_a_document(prepared, params, mesh)
    evaluations = _evaluations(prepared.config, trainer.steps, trainer.epoch_steps)
    read = evaluations * scored[0] + scored[1]  # and the test documents at the end
    logging.info("compiling the programs of a step to count their bytes")
    return {
        **counts,
        "timed_documents": len(timed.dataset[0][1]),
        "memory": memory_of(trainer, params, mesh),
        "evaluations": evaluations + 1,
        "documents_of_tasks": read / (evaluations + 1),
        "seconds": _seconds(prepared, read, a_document, trainer.steps, *seconds),
    }


def _counts(trainer: Trainer) -> Plan:
    """What the first BATCHES steps read, on average."""
    steps = range(min(BATCHES, trainer.steps))
    sums = {"computed": 0, "real": 0, "tokens": 0, "cut": 0, "documents": 0}
    for step in steps:
        batch, rows = trainer.dataset[step]
        counted = trainer.measure(batch) | {"documents": len(rows)}
        sums = {name: sums[name] + counted.get(name, 0) for name in sums}
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


def _seconds(
    prepared: Prepared,
    documents: int,
    a_document: float,
    steps: int,
    compiling: float,
    host: float,
    device: float,
) -> Plan:
    """How long the parts of the run take.

    `total` leaves out judgement and report, what tasks compute with vectors, and the
    documents of a task's own collection.

    Args:
      documents: those that all evaluations read.
      a_document: seconds to encode a document.
    """
    once = bool(prepared.corpus.vectors)
    halves = prepared.halved.lengths.sum() if prepared.halved else 0
    corpus = prepared.corpus
    read = len(corpus.rows_with_vectors) + len(corpus) * halves / corpus.lengths.sum()
    step = max(host, device)  # the host makes the next batches meanwhile
    parts = {
        "compile": compiling,
        "read_before_training": read * a_document if once else 0.0,
        "steps": steps * step,
        "evaluations": 0.0 if once else documents * a_document,
    }
    return parts | {"total": sum(parts.values()), "step": step, "batch_on_host": host}


def _evaluations(config: RunConfig, steps: int, epoch_steps: int) -> int:
    """How often a run is evaluated, without the end, where the test documents are."""
    every = epoch_steps if config.evaluate_every is None else config.evaluate_every
    between = (steps - 1) // every if every else 0
    return 1 + between + bool(config.keep.built.metric)


def _seconds_a_document(
    prepared: Prepared, params: Any, mesh: jax.sharding.Mesh
) -> float:
    """The seconds in which the encoder reads a document of the corpus, on average."""
    corpus = prepared.corpus
    cut = lambda row: dataclasses.replace(prepared.segments(corpus[row]), vectors=None)
    sample = duration.sampled(len(corpus), cut)
    read = functools.partial(prepared.model(params, mesh).inference().segments, params)
    rows = splits.evenly(np.arange(len(corpus)), MEASURED).tolist()
    tokens = np.mean([cut(row).lengths.sum() for row in rows])
    return float(tokens) * duration.seconds_a_token(read, sample)


def _timed(
    prepared: Prepared,
    trainer: Any,
    trainer_of: Callable[[Prepared], Trainer],
    params: Any,
    counts: Plan,
) -> tuple[Any, tuple[float, float, float]]:
    """The trainer whose steps were timed, and its `_step_times`."""
    try:
        smaller = _smaller(prepared, trainer, trainer_of)
        return smaller, _step_times(smaller, params, counts)
    except UserError:  # an objective may need more documents than the smaller batch has
        return trainer, _step_times(trainer, params, counts)


def _smaller(
    prepared: Prepared, trainer: Any, trainer_of: Callable[[Prepared], Trainer]
) -> Any:
    """A trainer whose step has about CALLS micro-batches, if a step of the run has more.

    The seconds of a step grow with its micro-batches.
    """
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


def _step_times(timed: Any, params: Any, counts: Plan) -> tuple[float, float, float]:
    """Seconds that compile, that make a batch, and that a step takes on the device."""
    key = jax.random.key(0)
    compiling, host, device, positions = 0.0, [], [], []
    state = sharding.replicate(timed.begin(params), timed.mesh)
    for number in range(min(STEPS, timed.steps)):
        started = time.perf_counter()
        batch, _ = timed.dataset[number]
        host.append(time.perf_counter() - started)
        batch, read = timed.put(batch), timed.measure(batch)
        positions.append(read["computed"])
        state, first = _timed_step(timed, state, batch, key)
        state, again = _timed_step(timed, state, batch, key)
        compiling += max(first - again, 0)
        device.append(again)
    whole = counts["positions_a_step"] / np.mean(positions) if any(positions) else 1.0
    return compiling, np.mean(host) * whole, np.mean(device) * whole


def _timed_step(
    trainer: Trainer, state: Any, batch: Any, key: jax.Array
) -> tuple[Any, float]:
    started = time.perf_counter()
    state, metrics = trainer.step(state, batch, key)
    jax.block_until_ready((state.params, metrics))
    return state, time.perf_counter() - started
