"""The trace of some steps; docs/add-a-part.md has the tests of callbacks."""

import docjax
from docjax.run import fields
from docjax.run.fields import Profile
from docjax.training.callbacks import Trace


def test_a_trace_has_the_steps_that_are_asked_for(tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(
        "jax.profiler.start_trace", lambda folder: called.append(folder)
    )
    monkeypatch.setattr("jax.profiler.stop_trace", lambda: called.append("stop"))
    trace = Trace(Profile(start=2, steps=2), tmp_path)
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
    trace = Trace(Profile(start=1, steps=9), tmp_path)
    trace.before(1)
    trace.close()
    trace.close()
    assert called == ["start", "stop"]


def test_a_profile_is_a_field_of_every_config():
    config = docjax.config.load("graph_roberta", variant="smoke")
    assert fields.resolve(config).profile is None
    config.profile = dict(start=10, steps=5)
    assert fields.resolve(config).profile == Profile(10, 5)
