"""The training run, top to bottom: restore, steps, save.

`stopping.py` watches for what ends a run early, `callbacks.py` calls a user's code.
"""

import collections
import contextlib
import dataclasses
import functools
import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import grain
import jax
import jax.numpy as jnp

from docjax.encoders.document import param_shapes
from docjax.errors import UserError
from docjax.parts.outside import errors_named
from docjax.progress import signals
from docjax.progress.bars import Bar, bar
from docjax.progress.signals import Stopped
from docjax.run import metrics as metrics_lib
from docjax.run.parameters import start_params
from docjax.run.prepared import Prepared
from docjax.storage import json_file
from docjax.storage.checkpoint import Checkpointer, restore_params
from docjax.training import memory, sharding
from docjax.training.callbacks import Callbacks, Trace
from docjax.training.stopping import Finite, NotFinite, anywhere, asked
from docjax.types import Keep, State, Trainer

logger = logging.getLogger(__name__)

Evaluate = Callable[[Any, str], dict[str, float]]
READ = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)


def train(
    prepared: Prepared,
    trainer: Trainer,
    mesh: jax.sharding.Mesh,
    evaluate: Evaluate,
    callbacks: Callbacks | None = None,
) -> State:
    """Trains to the last step and returns the last state.

    Training continues from the newest good checkpoint if there is one.
    `evaluate(params, part)` gives metrics.

    Raises:
      UserError: for a config that does not fit the data or the devices, and for a
        callback or a part from outside that fails; the run is saved.
      Stopped: after Ctrl-C or SIGTERM, when the state is saved.
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
    callbacks = callbacks or Callbacks()
    trace = Trace(config.profile, run, done, steps)
    begin(callbacks, config.to_json(), run, done, steps)
    log = metrics_lib.Metrics(run, done, steps, config.tensorboard)
    parts = prepared, trainer, log, checkpointer, data, evaluate, callbacks, trace
    loop = _Loop(*parts, best)
    if done == 0:
        with bar("before training"):
            loop.evaluate(0, prepared.encoder.document.plain(_start(prepared)))
    state = _steps(loop, state, done)
    checkpointer.wait()
    with loop.in_good_order("the end"):
        signals.take()
        loop.finish(state)
    return state


def _steps(loop: "_Loop", state: State, done: int) -> State:
    """Takes the steps after `done`; returns the state after the last one.

    A signal waits for the end of its step, which is saved; before the first step has
    ended nothing would be lost, and compiling takes long.
    """
    trainer, key = loop.trainer, jax.random.key(loop.prepared.config.seed)
    if jax.process_count() > 1:  # they stop together
        signals.defer()
    with bar("training", trainer.steps, "step", done) as loop.bar:
        for step in range(done + 1, trainer.steps + 1):
            first = step == done + 1
            compiles = bar("compiling the first step") if first else nullcontext()
            with loop.in_good_order(f"step {step}"):
                loop.trace.before(step)
                batch, rows = next(loop.data)
                counts = trainer.measure(batch) | {"documents": len(rows)}
                with compiles:
                    state, metrics = trainer.step(state, trainer.put(batch), key)
                loop.after(step, state, metrics, counts)
            if first:
                signals.defer()
    return state


@dataclasses.dataclass
class _Loop:
    """What happens between steps: checks, metrics, evaluation, checkpoints."""

    prepared: Prepared
    trainer: Trainer
    log: metrics_lib.Metrics
    checkpointer: Checkpointer
    data: grain.DatasetIterator
    run_tasks: Evaluate
    callbacks: Callbacks
    trace: Trace
    best: float  # of the validation metric that chooses
    finite: Finite = dataclasses.field(default_factory=Finite)
    clock: float = dataclasses.field(default_factory=time.perf_counter)
    sums: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    told: bool = False  # that a step learnt nothing
    bar: Bar = dataclasses.field(default_factory=lambda: Bar("training"))

    @property
    def keep(self) -> Keep:
        return self.prepared.config.keep.built

    @contextlib.contextmanager
    def in_good_order(self, during: str) -> Iterator[None]:
        """Closes files before an error leaves, which is told in one line if a part from
        outside or the device's memory caused it."""
        allow = self.prepared.config.allow
        try:
            with memory.out_of_memory_as_user_error(), errors_named(allow, during):
                yield
        except (UserError, Stopped):
            self.close()
            raise

    def close(self) -> None:
        """Ends what is written in the background."""
        self.trace.close()
        self.checkpointer.close()
        self.log.close()

    def after(
        self, step: int, state: State, metrics: dict, counts: dict[str, int]
    ) -> None:
        """Handles a step that the device computes, and waits for it only if the step is
        logged, evaluated or saved; `counts` belong to its batch."""
        self.finite.add(step, metrics)
        self.sums.update(counts, steps=1)
        self.bar.done = step
        self.trace.after(step, metrics)
        last = step == self.trainer.steps
        logged = last or step % self.prepared.config.log_every == 0
        evaluated = self._due("evaluate_every", step) and not last
        self.checkpointer.raise_if_failed()
        if logged or evaluated:
            self._check(metrics)
        if logged:
            self._log(step, self._line(jax.device_get(metrics)))
        if evaluated:
            self.evaluate(step, state.params)
        stop, failed = asked(step, bool(self.callbacks.failure), last)
        if self._due("checkpoint_every", step) or last or stop:
            self._check(metrics)
            self.save(state)
        if failed or (stop and not last):
            self.close()
            _end(self.callbacks, step, self.trainer.steps, self.prepared.run)

    def _log(self, step: int, line: dict[str, float]) -> None:
        """Writes the metrics of a step; warns once of a batch without positives."""
        self.log.write(step, line)
        self.bar.note = metrics_lib.shown(line)
        self.callbacks.step(step, line)
        if line.get("train/anchors") == 0 and not self.told:
            self.told = True
            logger.warning(
                "step %d, perhaps not alone, learnt nothing: no view of its batch has a "
                "positive; give documents with more relations or labels, or a larger "
                "batch",
                step,
            )

    def _due(self, name: str, step: int) -> bool:
        """Whether `step` is a multiple of field `name`; None: of an epoch, 0: never."""
        every = getattr(self.prepared.config, name)
        every = self.trainer.epoch_steps if every is None else every
        return every > 0 and step % every == 0

    def evaluate(self, step: int, params: Any) -> None:
        part = "validation" if self.prepared.config.splits.validation else "test"
        started = time.perf_counter()
        with bar("scores"):
            scores = self.run_tasks(params, part)
        if scores:
            self.log.write(step, scores)
            self.callbacks.evaluation(step, scores)
        self._select(scores, step, params)
        self.clock += time.perf_counter() - started

    def _select(self, scores: dict[str, float], step: int, params: Any) -> None:
        """Keeps the parameters if they are the best so far."""
        name = self.keep.metric
        if not name:
            return
        if f"validation/{name}" not in scores:
            names = ", ".join(k.removeprefix("validation/") for k in scores)
            raise UserError(
                f"keep.metric {name!r} is not a validation metric; this run has "
                f"{names or 'none'}: --config.splits.validation names the validation "
                "documents, and most tasks need their labels"
            )
        value = scores[f"validation/{name}"]
        if value > self.best:
            self.best = value
            self._write_kept(step, params, scores)

    def _write_kept(self, step: int, params: Any, scores: dict[str, float]) -> None:
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
        if self.keep.metric:
            self.evaluate(steps, params)
            params = restore_params(self.prepared.run, params)
            self._note_selected()
        else:
            with bar("what to keep"):
                params = self._chosen(params)
        with bar("scores"):
            scores = self.run_tasks(params, "test")
        if scores:
            self.log.write(steps, scores)
            self.callbacks.evaluation(steps, scores)
        self.close()

    def _chosen(self, trained: Any) -> Any:
        """The parameters that the run keeps, by the config's `keep`."""
        start = functools.partial(_start, self.prepared)
        kept = self.keep.choose(self.prepared, self.trainer.mesh, start, trained)
        if kept is None:
            return trained
        self._note(kept.name, kept.reason, kept.helps)
        if kept.metrics:
            self.log.write(self.trainer.steps, kept.metrics)
        if kept.params is trained:
            return trained
        params = sharding.replicate(kept.params, self.trainer.mesh)
        self._write_kept(0, params, kept.metrics)
        return params

    def _note(self, keeps: str, reason: str, helps: bool = True) -> None:
        """Says what the run keeps, in one line, and writes RUN/judgement.json."""
        logger.log(logging.INFO if helps else logging.WARNING, "%s", reason)
        if jax.process_index() == 0:
            facts = {"keeps": keeps, "reason": reason, "helps": helps}
            json_file.write(self.prepared.run / "judgement.json", facts)

    def _note_selected(self) -> None:
        """Says which evaluated step the run keeps, and its score before training."""
        if jax.process_index():  # metrics.jsonl may lie on the disk of process 0
            return
        name = f"validation/{self.keep.metric}"
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
        self._note("trained" if best else "start", reason, helps=bool(best))

    def _check(self, metrics: dict[str, jax.Array]) -> None:
        """Raises NotFinite if the loss or gradient of a step was not finite."""
        step = self.finite.bad_step()
        if not step:
            return
        ids = self.trainer.documents(step)
        self.close()
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


def begin(
    callbacks: Callbacks, config: dict[str, Any], run: Path, done: int, steps: int
) -> None:
    """Calls the callbacks before the first step, or before the next after `done`.

    Raises:
      UserError: if a callback of this process fails.
      Stopped: if a callback of another process fails.
    """
    callbacks.begin(config, run)
    if any(anywhere(bool(callbacks.failure))):
        _end(callbacks, done, steps, run)


def _end(callbacks: Callbacks, step: int, steps: int, run: Path) -> None:
    """Ends the run after a step that is saved: raises UserError if a callback of this
    process failed, and Stopped otherwise."""
    saved = f"saved in {run}: the same command continues"
    if step == 0:
        saved = "nothing was trained"
    callbacks.raise_failure(f"stopped at step {step} of {steps}, {saved}")
    raise Stopped(f"stopped at step {step} of {steps}, {saved}")


def _start(prepared: Prepared) -> Any:
    """The parameters before the first step."""
    return start_params(prepared.config, prepared.encoder, prepared.run)


def _shapes(prepared: Prepared, trainer: Trainer) -> State:
    """The shapes of the state."""
    return jax.eval_shape(trainer.begin, param_shapes(prepared.encoder))


def _rest(state: State) -> dict[str, Any]:
    """The parts of the state that a checkpoint holds beside the parameters."""
    rest = {"step": state.step, "optimizer": state.optimizer}
    # Orbax saves no tree without arrays; `_restore` takes it from the shapes.
    return rest | ({"memory": state.memory} if jax.tree.leaves(state.memory) else {})


def _restore(
    checkpointer: Checkpointer, like: State, data, mesh
) -> tuple[State, float] | None:
    """The newest good checkpoint's state, shaped `like`, and the best metric so far;
    `data` continues from there."""
    everywhere = sharding.abstract(mesh)
    restored = checkpointer.restore(everywhere(like.params), everywhere(_rest(like)))
    if restored is None:
        return None
    params, rest, progress = restored
    data.set_state(progress["data"])
    logger.info("resumed at step %d", int(rest["step"]))
    state = State(
        rest["step"], params, rest["optimizer"], rest.get("memory", like.memory)
    )
    return state, progress["best"]
