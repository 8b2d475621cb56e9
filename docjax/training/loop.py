"""The training run, top to bottom: restore, steps, save."""

import collections
import dataclasses
import math
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import grain
import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from jax.experimental import multihost_utils

from docjax.encoders import from_mean
from docjax.encoders.document import param_shapes
from docjax.errors import UserError
from docjax.run import metrics as metrics_lib
from docjax.run.parameters import start_params
from docjax.run.prepared import Prepared
from docjax.storage import json_file
from docjax.storage.checkpoint import Checkpointer, restore_params
from docjax.training import memory, sharding
from docjax.types import State, Trainer

Evaluate = Callable[[Any, str], dict[str, float]]
Judge = Callable[[Any, Any], Any]  # start, trained -> docjax.run.judgement.Judgement
READ = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
AHEAD = 2  # steps that may wait on the device before the loop waits for the oldest
STOP_EVERY = 8  # steps between two exchanges of the stop signal among processes


class Stopped(Exception):
    """SIGTERM came; everything is saved and the same command continues the run."""


class NotFinite(Exception):
    """The loss or the gradient is not a number."""


def train(
    prepared: Prepared,
    trainer: Trainer,
    mesh: jax.sharding.Mesh,
    evaluate: Evaluate,
    judge: Judge | None = None,
) -> State:
    """Trains to the last step and returns the last state.

    Training continues from the newest good checkpoint if there is one.
    `evaluate(params, part)` gives metrics. `judge(start, trained)` says what to keep.

    Raises:
      UserError: for a config that does not fit the data or the devices.
      Stopped: after SIGTERM, when the state is saved.
      NotFinite: if the loss or the gradient is not finite; names step and documents.
    """
    config, run = prepared.config, prepared.run
    data = iter(trainer.dataset.to_iter_dataset(READ))
    checkpointer = Checkpointer(run / "checkpoints")
    restored = _restore(checkpointer, _shapes(prepared, trainer), data, mesh)
    if restored is None:
        restored = sharding.replicate(trainer.begin(_start(prepared)), mesh), -math.inf
    state, best = restored
    done, steps = int(state.step), trainer.steps
    log = metrics_lib.Metrics(run, done, steps, config.tensorboard)
    loop = _Loop(prepared, trainer, log, checkpointer, data, evaluate, judge, best)
    if done == 0:
        loop.evaluate(0, from_mean.plain(prepared.encoder.document, _start(prepared)))
    key = jax.random.key(config.seed)
    for step in range(done + 1, steps + 1):
        batch, rows = next(data)
        counts = trainer.measure(batch) | {"documents": len(rows)}
        with memory.out_of_memory_as_user_error():
            state, metrics = trainer.step(state, trainer.put(batch), key)
            loop.after(step, state, metrics, counts)
    checkpointer.wait()
    loop.stop.restore()
    loop.finish(state)
    return state


class _Finite:
    """Watches for a loss that is not finite, without waiting for the device.

    The device keeps the number of the first bad step. At most AHEAD steps wait on the
    device: a CPU of several devices can hang if more calls wait, and memory holds the
    batches of all waiting steps.
    """

    def __init__(self) -> None:
        self._first = jnp.int32(0)
        self._under_way: collections.deque[jax.Array] = collections.deque()

    def add(self, step: int, metrics: dict[str, jax.Array]) -> None:
        """Notes the metrics of a step that the device computes."""
        values = metrics["loss"], metrics["grad_norm"]
        self._first = _first_bad(self._first, jnp.int32(step), *values)
        self._under_way.append(self._first)
        if len(self._under_way) > AHEAD:
            self._under_way.popleft().block_until_ready()

    def bad_step(self) -> int:
        """The first step whose loss or gradient was not finite; 0 if there is none."""
        return int(self._first)


@jax.jit
def _first_bad(first: jax.Array, step: jax.Array, *values: jax.Array) -> jax.Array:
    good = jnp.stack([jnp.isfinite(value) for value in values]).all()
    return jnp.where((first == 0) & ~good, step, first)


@dataclasses.dataclass
class _Loop:
    """What happens between steps: checks, metrics, evaluation, checkpoints."""

    prepared: Prepared
    trainer: Trainer
    log: metrics_lib.Metrics
    checkpointer: Checkpointer
    data: grain.DatasetIterator
    run_tasks: Evaluate
    judge: Judge | None
    best: float  # of the selected validation metric
    stop: "_Stop" = dataclasses.field(default_factory=lambda: _Stop())
    finite: _Finite = dataclasses.field(default_factory=_Finite)
    clock: float = dataclasses.field(default_factory=time.perf_counter)
    sums: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    told: bool = False  # that a step learnt nothing

    def after(
        self, step: int, state: State, metrics: dict, counts: dict[str, int]
    ) -> None:
        """Handles a step that the device computes; `counts` belong to its batch.

        Only a step that is logged, evaluated or saved waits for the device.
        """
        self.finite.add(step, metrics)
        self.sums.update(counts, steps=1)
        self.log.tick(step)
        last, stop = step == self.trainer.steps, self.stop.asked(step)
        logged = last or step % self.prepared.config.log_every == 0
        evaluated = self._due("evaluate_every", step) and not last
        saved = self._due("checkpoint_every", step) or last or stop
        self.checkpointer.raise_if_failed()
        if logged or evaluated or saved:
            self._check(metrics)
        if logged:
            self._log(step, self._line(jax.device_get(metrics)))
        if evaluated:
            self.evaluate(step, state.params)
        if saved:
            self.save(state)
        if stop and not last:
            self.checkpointer.close()
            self.log.close()
            raise Stopped(
                f"stopped at step {step} of {self.trainer.steps} and saved in "
                f"{self.prepared.run}: the same command continues"
            )

    def _log(self, step: int, line: dict[str, float]) -> None:
        """Writes the metrics of a step; warns once of a batch without positives."""
        self.log.write(step, line)
        if line.get("train/anchors") == 0 and not self.told:
            self.told = True
            logging.warning(
                "step %d, perhaps not alone, learnt nothing: no view of its batch has a "
                "positive; give documents with more relations or labels, or a larger "
                "batch",
                step,
            )

    def _due(self, name: str, step: int) -> bool:
        """Whether `step` is a multiple of the config's field `name`.

        A field of None means once per epoch, 0 means never.
        """
        every = getattr(self.prepared.config, name)
        every = self.trainer.epoch_steps if every is None else every
        return every > 0 and step % every == 0

    def evaluate(self, step: int, params: Any) -> None:
        part = "validation" if self.prepared.config.splits.validation else "test"
        started = time.perf_counter()
        scores = self.run_tasks(params, part)
        if scores:
            self.log.write(step, scores)
        self._select(scores, step, params)
        self.clock += time.perf_counter() - started

    def _select(self, scores: dict[str, float], step: int, params: Any) -> None:
        """Keeps the parameters if they are the best so far."""
        name = self.prepared.config.select
        if not name:
            return
        if f"validation/{name}" not in scores:
            names = ", ".join(k.removeprefix("validation/") for k in scores)
            raise UserError(
                f"select {name!r} is not a validation metric; this run has "
                f"{names or 'none'}: --config.splits.validation names the validation "
                "documents, and most tasks need their labels"
            )
        value = scores[f"validation/{name}"]
        if value > self.best:
            self.best = value
            self._keep(step, params, scores)

    def _keep(self, step: int, params: Any, scores: dict[str, float]) -> None:
        """Makes `params` the parameters that the run ends with."""
        keeper = Checkpointer(self.prepared.run / "best", keep=1)
        keeper.save(step, params, {"step": jnp.int32(step)}, scores)
        keeper.close()

    def save(self, state: State) -> None:
        rest = _rest(state)
        progress = {"data": self.data.get_state(), "best": self.best}
        self.checkpointer.save(int(state.step), state.params, rest, progress)

    def finish(self, state: State) -> None:
        """Runs the tasks on the test documents, with the selected parameters."""
        params, steps = state.params, self.trainer.steps
        if self.prepared.config.select:
            self.evaluate(steps, params)
            params = restore_params(self.prepared.run, params)
            self._note_selected()
        elif self.judge:
            params = self._judged(params)
        scores = self.run_tasks(params, "test")
        if scores:
            self.log.write(steps, scores)
        self.checkpointer.close()
        self.log.close()

    def _judged(self, trained: Any) -> Any:
        """The parameters that the run keeps, see `docjax/run/judgement.py`."""
        start = _start(self.prepared)
        judgement = self.judge(start, trained)
        self._note(judgement.keeps, judgement.reason)
        if judgement.metrics:
            self.log.write(self.trainer.steps, judgement.metrics)
        if judgement.params is trained:
            return trained
        kept = sharding.replicate(judgement.params, self.trainer.mesh)
        self._keep(0, kept, judgement.metrics)
        return kept

    def _note(self, keeps: str, reason: str) -> None:
        """Says what the run keeps, in one line, and writes RUN/judgement.json."""
        logging.info("%s", reason)
        if jax.process_index() == 0:
            facts = {"keeps": keeps, "reason": reason}
            json_file.write(self.prepared.run / "judgement.json", facts)

    def _note_selected(self) -> None:
        """Says which evaluated step the run keeps, and its score before training."""
        if jax.process_index():  # metrics.jsonl may lie on the disk of process 0
            return
        name = f"validation/{self.prepared.config.select}"
        lines = metrics_lib.read(self.prepared.run)
        values = {line["step"]: line[name] for line in lines if name in line}
        best = max(values, key=values.get)
        start = f"{values[0]:.4f}" if 0 in values else "an unknown value"
        before = f"{start} before training"  # RUN/metrics.jsonl may have been deleted
        if best == 0:
            reason = f"the run keeps its start: no step has a better {name}, {before}"
        else:
            reason = (
                f"the run keeps step {best} of {self.trainer.steps}, the best by "
                f"{name}: {values[best]:.4f}, {before}"
            )
        self._note("trained" if best else "start", reason)

    def _check(self, metrics: dict[str, jax.Array]) -> None:
        """Raises NotFinite if the loss or gradient of a step was not finite."""
        step = self.finite.bad_step()
        if not step:
            return
        ids = self.trainer.documents(step)
        self.checkpointer.close()
        raise NotFinite(
            f"step {step}: the loss or its gradient is not finite (now loss "
            f"{float(metrics['loss'])}, gradient norm {float(metrics['grad_norm'])}); "
            f"lower optimizer.learning_rate; the last checkpoint is kept; the step "
            f"read {len(ids)} documents: {', '.join(ids)}"
        )

    def _line(self, metrics: dict[str, Any]) -> dict[str, float]:
        """The metrics of this step, and the rates since the last logged step."""
        seconds = time.perf_counter() - self.clock
        sums, self.sums = self.sums, collections.Counter()
        self.clock = time.perf_counter()
        line = {f"train/{name}": float(value) for name, value in metrics.items()} | {
            "time/step_s": seconds / sums["steps"],
            "time/documents_per_s": sums["documents"] / seconds,
        }
        if sums["cut"]:
            line["data/cut"] = sums["cut"] / (sums["cut"] + sums["tokens"])
        if not sums["computed"]:  # a frozen segment encoder reads no tokens
            return line
        return line | {
            "data/padding": 1 - sums["real"] / sums["computed"],
            "time/tokens_per_s": sums["tokens"] / seconds,
        }


class _Stop:
    """Whether SIGTERM reached any process during training."""

    def __init__(self) -> None:
        self._came = False
        self._main = threading.current_thread() is threading.main_thread()
        if self._main:  # only the main thread may handle signals
            self._before = signal.signal(signal.SIGTERM, self._handle)

    def restore(self) -> None:
        """Restores the earlier handler of SIGTERM, once everything is saved.

        A signal that came meanwhile goes to that handler.
        """
        if self._main:
            signal.signal(signal.SIGTERM, self._before)
            if self._came:
                signal.raise_signal(signal.SIGTERM)

    def _handle(self, *_) -> None:
        self._came = True

    def asked(self, step: int) -> bool:
        """Whether to stop; several processes agree on this every STOP_EVERY steps."""
        if jax.process_count() == 1:
            return self._came
        if step % STOP_EVERY:
            return False
        return bool(multihost_utils.process_allgather(np.array(self._came)).any())


def _start(prepared: Prepared) -> Any:
    """The parameters before the first step."""
    return start_params(prepared.config, prepared.encoder, prepared.run)


def _shapes(prepared: Prepared, trainer: Trainer) -> State:
    """The shapes of the state."""
    return jax.eval_shape(trainer.begin, param_shapes(prepared.encoder))


def _rest(state: State) -> dict[str, Any]:
    """The parts of the state that a checkpoint holds beside the parameters."""
    rest = {"step": state.step, "optimizer": state.optimizer}
    return rest | ({"memory": state.memory} if state.memory else {})


def _restore(
    checkpointer: Checkpointer, like: State, data, mesh
) -> tuple[State, float] | None:
    """The newest good checkpoint's state, shaped `like`, and the best metric so far.

    `data` continues where the checkpoint left off.
    """
    everywhere = lambda tree: jax.tree.map(sharding.abstract(mesh), tree)
    restored = checkpointer.restore(everywhere(like.params), everywhere(_rest(like)))
    if restored is None:
        return None
    params, rest, progress = restored
    data.set_state(progress["data"])
    logging.info("resumed at step %d", int(rest["step"]))
    state = State(rest["step"], params, rest["optimizer"], rest.get("memory", ()))
    return state, progress["best"]
