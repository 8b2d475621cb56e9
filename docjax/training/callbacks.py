"""A user's callbacks during a run, and the trace of some steps.

A callback is an object with one or more of the methods `begin`, `step`, `evaluation`
and `end` (`docjax.types.OnBegin` and its neighbours). Only the first process calls it.
"""

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from docjax.errors import UserError
from docjax.parts.annotations import shown
from docjax.parts.protocols import unfit
from docjax.run.fields import Profile
from docjax.types import OnBegin, OnEnd, OnEvaluation, OnStep

logger = logging.getLogger(__name__)

KINDS = (OnBegin, OnStep, OnEvaluation, OnEnd)


class Callbacks:
    """Calls a user's callbacks; remembers the first error of one. Raises UserError for
    an object that is no callback, or no list."""

    def __init__(self, callbacks: Any = ()):
        if not isinstance(callbacks, (list, tuple)):
            raise UserError(f"callbacks {shown(callbacks)} is not a list: give [...]")
        for callback in callbacks:
            _check(callback)
        self._callbacks = tuple(callbacks) if jax.process_index() == 0 else ()
        self.failure = ""  # what failed, in one line
        self._cause: BaseException | None = None

    def begin(self, config: dict[str, Any], workdir: Path) -> None:
        self._call("begin", "", config, workdir)

    def step(self, step: int, metrics: Mapping[str, float | int]) -> None:
        self._call("step", f" at step {step}", step, dict(metrics))

    def evaluation(self, step: int, metrics: Mapping[str, float | int]) -> None:
        self._call("evaluation", f" after step {step}", step, dict(metrics))

    def end(self, metrics: Mapping[str, float | int]) -> None:
        """Raises UserError if a callback fails; the run itself is complete."""
        self._call("end", "", dict(metrics))
        self.raise_failure("the run is complete")

    def raise_failure(self, state: str) -> None:
        """Raises UserError with the first error and the `state` of the run, if any."""
        if self.failure:
            raise UserError(f"{self.failure}; {state}") from self._cause

    def _call(self, method: str, when: str, *given: Any) -> None:
        for callback in self._callbacks:
            call = getattr(callback, method, None)
            if self.failure or call is None:
                continue
            try:
                call(*given)
            except (Exception, SystemExit) as error:  # noqa: BLE001 it may raise anything
                self._cause = error
                self.failure = (
                    f"callback {type(callback).__name__} raised {type(error).__name__} "
                    f"in {method}(){when} ({_place(error)}): "
                    f"{' '.join(str(error).split())}"
                )


def _place(error: BaseException) -> str:
    """The file and line of the callback that called what raised the error."""
    trace = error.__traceback__.tb_next or error.__traceback__
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


class Trace:
    """Writes the trace of jax.profiler for the steps of `profile` to RUN/profile.

    Raises UserError for a first step after the last of `steps`; warns of a first step
    that is `done` without a trace.
    """

    def __init__(self, profile: Profile | None, run: Path, done: int, steps: int):
        self._profile, self._folder, self._runs = profile, run / "profile", False
        if profile and profile.start > steps:
            raise UserError(
                f"profile.start {profile.start} is after the last step: the run has "
                f"{steps} steps; give a smaller --config.profile.start"
            )
        if profile and profile.start <= done and not self._folder.exists():
            logger.warning(
                "no trace is written: the run continues after step %d, and profile.start "
                "is %d",
                done,
                profile.start,
            )

    def before(self, step: int) -> None:
        if self._profile and step == self._profile.start:
            jax.profiler.start_trace(self._folder)
            self._runs, self._since = True, time.perf_counter()

    def after(self, step: int, metrics: Any) -> None:
        """Ends the trace after its last step, once the device has computed it."""
        if self._runs and step == self._profile.start + self._profile.steps - 1:
            jax.block_until_ready(metrics)
            self.close()

    def close(self) -> None:
        if self._runs:
            jax.profiler.stop_trace()
            self._runs = False
            seconds = time.perf_counter() - self._since
            logger.info("a trace of %.1f s is in %s", seconds, self._folder)


def _check(callback: Any) -> None:
    """Raises UserError for an object that no moment of a run calls."""
    kinds = [kind for kind in KINDS if isinstance(callback, kind)]
    if not kinds or isinstance(callback, type):
        raise UserError(
            f"callbacks: {shown(callback)} is no callback: give an object with a method "
            "begin, step, evaluation or end"
        )
    for kind in kinds:
        if fault := unfit(callback, kind):
            raise UserError(f"callbacks: {type(callback).__name__}.{fault}")
