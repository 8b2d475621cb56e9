"""The trace of some steps; docs/add-a-part.md has the tests of callbacks."""

import sys

import numpy as np
import pytest

import docjax
from docjax.errors import UserError
from docjax.run import fields
from docjax.run.fields import Profile
from docjax.training.callbacks import Callbacks, Trace
from docjax.training.loop import Stopped, begin
from docjax.training.stopping import anywhere


def test_a_trace_has_the_steps_that_are_asked_for(tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(
        "jax.profiler.start_trace", lambda folder: called.append(folder)
    )
    monkeypatch.setattr("jax.profiler.stop_trace", lambda: called.append("stop"))
    trace = Trace(Profile(start=2, steps=2), tmp_path, 0, 5)
    moments = []
    for step in range(1, 6):
        trace.before(step)
        moments.append(len(called))
        trace.after(step, {})
    trace.close()
    assert called == [tmp_path / "profile", "stop"]
    assert moments == [0, 1, 1, 2, 2]  # steps 2 and 3 lie between both calls


def test_a_run_that_ends_early_ends_its_trace(tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(
        "jax.profiler.start_trace", lambda folder: called.append("start")
    )
    monkeypatch.setattr("jax.profiler.stop_trace", lambda: called.append("stop"))
    trace = Trace(Profile(start=1, steps=9), tmp_path, 0, 9)
    trace.before(1)
    trace.close()
    trace.close()
    assert called == ["start", "stop"]


def test_a_trace_that_cannot_be_written_is_told(tmp_path, caplog):
    with pytest.raises(UserError, match="profile.start 10 is after .* has 9 steps"):
        Trace(Profile(start=10, steps=1), tmp_path, 0, 9)
    Trace(Profile(start=4, steps=1), tmp_path, 3, 9)
    assert not caplog.messages
    Trace(Profile(start=3, steps=1), tmp_path, 3, 9)
    assert "the run continues after step 3, and profile.start is 3" in caplog.text


def test_a_callback_that_exits_ends_the_run_as_others_that_raise():
    class Exits:
        def step(self, step, metrics):
            sys.exit("enough")

    callbacks = Callbacks([Exits()])
    callbacks.step(2, {})
    with pytest.raises(UserError) as error:
        callbacks.raise_failure("saved")
    line = str(error.value)
    assert line.startswith("callback Exits raised SystemExit in step() at step 2 (")
    assert line.endswith("enough; saved")


def test_all_processes_end_if_a_callback_of_the_first_fails(tmp_path, monkeypatch):
    """This process has no callback; another process says that its callback failed."""
    monkeypatch.setattr("jax.process_count", lambda: 2)
    monkeypatch.setattr(
        "jax.experimental.multihost_utils.process_allgather",
        lambda mine: np.stack([mine, np.ones_like(mine)]),
    )
    assert anywhere(False) == (True,)
    with pytest.raises(Stopped, match="stopped at step 0 of 6, nothing was trained"):
        begin(Callbacks(), {}, tmp_path, 0, 6)


def test_a_profile_is_a_field_of_every_config():
    config = docjax.config.load("graph_roberta", variant="smoke")
    assert fields.resolve(config).profile is None
    config.profile = dict(start=10, steps=5)
    assert fields.resolve(config).profile == Profile(10, 5)
