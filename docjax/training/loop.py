"""The training run, top to bottom: prepare, restore, steps, save."""

import dataclasses
import math
import signal
import time
from collections.abc import Callable
from typing import Any

import grain
import jax
import numpy as np
from absl import logging
from jax.experimental import multihost_utils

from docjax import config as config_lib
from docjax.encoders.document import fresh_params
from docjax.errors import UserError
from docjax.objectives.negative_sampling import NegativeSampling
from docjax.run import metrics as metrics_lib
from docjax.run.prepare import Prepared, initial_params
from docjax.storage.checkpoint import Checkpointer, restore_params
from docjax.training import memory, sharding
from docjax.training.step import State
from docjax.training.vector_trainer import VectorTrainer
from docjax.training.word_trainer import WordTrainer

Evaluate = Callable[[Any, str], dict[str, float]]


class Stopped(Exception):
    """SIGTERM came; everything is saved and the same command goes on."""


class NotFinite(Exception):
    """The loss or the gradient is not a number."""


def train(prepared: Prepared, mesh: jax.sharding.Mesh, evaluate: Evaluate) -> State:
    """Trains to the end, from the newest good checkpoint if there is one.

    `evaluate(params, part)` gives the metrics of the tasks.

    Raises:
      UserError: for a config that does not fit the data or the devices.
      Stopped: after SIGTERM, when the state is saved.
      NotFinite: with the step and the documents.
    """
    config, run = prepared.config, prepared.run
    trainer = _trainer(prepared, mesh)
    steps = config["steps"] or config["epochs"] * trainer.epoch_steps
    data = iter(trainer.dataset(steps).to_iter_dataset(READ))
    checkpointer = Checkpointer(run / "checkpoints")
    shapes = jax.eval_shape(lambda: fresh_params(prepared.encoder, 0))
    found = _restore(checkpointer, jax.eval_shape(trainer.begin, shapes), data, mesh)
    if found is None:
        state = trainer.begin(initial_params(prepared))
        found = sharding.replicate(state, mesh), -math.inf
    state, best = found
    key = jax.random.key(config["seed"])
    log = metrics_lib.Metrics(run, int(state.step), steps, config["tensorboard"])
    loop = _Loop(
        prepared, log, checkpointer, data, evaluate, steps, trainer.epoch_steps, best
    )
    if state.step == 0:
        loop.evaluate(0, state)
    for step in range(int(state.step) + 1, steps + 1):
        batch, documents = next(data)
        measured = trainer.measure(batch)
        with memory.out_of_memory_as_user_error():
            state, found = trainer.step(state, trainer.put(batch), key)
        loop.after(step, state, found, documents, measured)
    loop.stop.restore()
    loop.finish(state)
    return state


def _trainer(
    prepared: Prepared, mesh: jax.sharding.Mesh
) -> VectorTrainer | WordTrainer:
    """The one that the objective asks for."""
    objective = config_lib.build(prepared.config["objective"])
    kind = WordTrainer if isinstance(objective, NegativeSampling) else VectorTrainer
    return kind(prepared, objective, mesh)


@dataclasses.dataclass
class _Loop:
    """What happens between steps: checks, metrics, evaluation, checkpoints."""

    prepared: Prepared
    log: metrics_lib.Metrics
    checkpointer: Checkpointer
    data: grain.DatasetIterator
    run_tasks: Evaluate
    steps: int
    epoch_steps: int
    best: float  # of the selected validation metric
    stop: "_Stop" = dataclasses.field(default_factory=lambda: _Stop())
    clock: float = dataclasses.field(default_factory=time.perf_counter)
    sums: dict[str, float] = dataclasses.field(default_factory=dict)

    def after(self, step, state, found, documents, measured) -> None:
        """Looks at a finished step; `found` are its metrics, `measured` its tokens and
        the share of padding."""
        config = self.prepared.config
        found = {name: float(value) for name, value in jax.device_get(found).items()}
        self._check(step, found, documents)
        tokens, padding = measured
        self._add(documents=len(documents), tokens=tokens, steps=1)
        self.log.tick(step)
        if step % config["log_every"] == 0 or step == self.steps:
            self.log.write(step, self._line(found, padding))
        if self._due("evaluate_every", step) and step < self.steps:
            self.evaluate(step, state)
        stop = self.stop.asked()
        due = self._due("checkpoint_every", step)
        if due or step == self.steps or stop:
            self.save(state)
        if stop and step < self.steps:
            self.checkpointer.close()
            self.log.close()
            raise Stopped(
                f"stopped at step {step} of {self.steps}, saved in {self.prepared.run}"
            )

    def _due(self, name: str, step: int) -> bool:
        """Whether something is due that is done every so many steps, if the config
        does not say once an epoch; never if that is 0."""
        every = self.prepared.config[name]
        every = self.epoch_steps if every is None else every
        return every > 0 and step % every == 0

    def evaluate(self, step: int, state: State) -> None:
        part = "validation" if self.prepared.config["splits"]["validation"] else "test"
        started = time.perf_counter()
        found = self.run_tasks(state.params, part)
        if found:
            self.log.write(step, found)
            self._select(found, state)
        self.clock += time.perf_counter() - started

    def _select(self, found: dict[str, float], state: State) -> None:
        """Keeps the parameters if they are the best so far."""
        name = self.prepared.config["select"]
        if not name:
            return
        if f"validation/{name}" not in found:
            raise UserError(
                f"select {name!r} is no validation metric; those of this run are "
                f"{', '.join(k.removeprefix('validation/') for k in found)}, and "
                "--config.splits.validation names their documents"
            )
        value = found[f"validation/{name}"]
        if value > self.best:
            self.best = value
            keeper = Checkpointer(self.prepared.run / "best", keep=1)
            keeper.save(int(state.step), state.params, {"step": state.step}, found)
            keeper.close()

    def save(self, state: State) -> None:
        rest = {"step": state.step, "optimizer": state.optimizer}
        progress = {"data": self.data.get_state(), "best": self.best}
        self.checkpointer.save(int(state.step), state.params, rest, progress)

    def finish(self, state: State) -> None:
        """The tasks on the test documents, with the selected parameters."""
        self.checkpointer.wait()
        params = state.params
        if self.prepared.config["select"]:
            self.evaluate(self.steps, state)
            params = restore_params(self.prepared.run, params)
        found = self.run_tasks(params, "test")
        if found:
            self.log.write(self.steps, found)
        self.checkpointer.close()
        self.log.close()

    def _check(self, step: int, found: dict, documents: np.ndarray) -> None:
        if metrics_lib.finite(found["loss"], found["grad_norm"]):
            return
        ids = [self.prepared.corpus.ids[i] for i in documents]
        self.checkpointer.close()
        raise NotFinite(
            f"step {step}: loss {found['loss']}, gradient norm {found['grad_norm']}; "
            f"lower optimizer.learning_rate; the last checkpoint is kept; the batch's "
            f"{len(ids)} documents: {', '.join(ids)}"
        )

    def _add(self, **values: Any) -> None:
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def _line(self, found: dict[str, float], padding: float) -> dict[str, float]:
        """The metrics of this step, and rates since the last line."""
        seconds = time.perf_counter() - self.clock
        sums, self.sums, self.clock = self.sums, {}, time.perf_counter()
        line = {f"train/{name}": value for name, value in found.items()} | {
            "time/step_s": seconds / sums["steps"],
            "time/documents_per_s": sums["documents"] / seconds,
        }
        if self.prepared.encoder.frozen:  # no tokens are read
            return line
        return line | {
            "data/padding": padding,
            "time/tokens_per_s": sums["tokens"] / seconds,
        }


class _Stop:
    """Whether SIGTERM came, to any process, while steps are taken."""

    def __init__(self) -> None:
        self._came = False
        self._before = signal.signal(signal.SIGTERM, self._handle)

    def restore(self) -> None:
        """From here on SIGTERM does what it did before: all is saved."""
        signal.signal(signal.SIGTERM, self._before)

    def _handle(self, *_) -> None:
        self._came = True

    def asked(self) -> bool:
        if jax.process_count() == 1:
            return self._came
        return bool(multihost_utils.process_allgather(np.array(self._came)).any())


READ = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)


def _restore(
    checkpointer: Checkpointer, like: State, data, mesh
) -> tuple[State, float] | None:
    """The newest good checkpoint's state, shaped `like`, and the best metric so far.

    The data goes on where it was.
    """
    rest = {"step": like.step, "optimizer": like.optimizer}
    everywhere = lambda tree: jax.tree.map(sharding.abstract(mesh), tree)
    found = checkpointer.restore(everywhere(like.params), everywhere(rest))
    if found is None:
        return None
    params, rest, progress = found
    data.set_state(progress["data"])
    logging.info("resumed at step %d", int(rest["step"]))
    state = State(rest["step"], params, rest["optimizer"])
    return state, progress["best"]
