"""What happens between the steps of a run, with a trainer that computes nothing."""

import collections
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from docjax.progress.bars import Bar
from docjax.training import loop, stopping
from docjax.types import State

EVERY, BAD, STEPS = 5, 7, 20


@pytest.fixture
def fetched(monkeypatch) -> list[int]:
    """The steps whose metrics the loop fetches from the device."""
    steps, fetch = [], jax.device_get

    def device_get(metrics):
        steps.append(int(metrics["step"]))
        return fetch(metrics)

    monkeypatch.setattr(loop.jax, "device_get", device_get)
    return steps


@pytest.fixture
def running(tmp_path):
    """The loop of a run that logs every EVERY steps; only its own parts are real."""
    nothing = lambda *_: None
    one = object.__new__(loop._Loop)
    one.prepared = SimpleNamespace(
        run=tmp_path,
        config=SimpleNamespace(
            log_every=EVERY, evaluate_every=0, checkpoint_every=0, splits=None
        ),
    )
    one.trainer = SimpleNamespace(
        steps=STEPS, epoch_steps=STEPS, documents=lambda step: [f"document {step}"]
    )
    one.log = SimpleNamespace(write=nothing, close=nothing)
    one.bar = Bar("training")
    one.checkpointer = SimpleNamespace(raise_if_failed=lambda: None, close=lambda: None)
    one.save = nothing
    one.callbacks = SimpleNamespace(step=nothing, failure="")
    one.trace = SimpleNamespace(after=nothing, close=nothing)
    one.finite, one.sums, one.clock = stopping.Finite(), collections.Counter(), 0.0
    return one


def take(running, step: int, loss: float = 1.0) -> None:
    metrics = {"loss": jnp.float32(loss), "grad_norm": jnp.float32(1)}
    metrics["step"] = jnp.int32(step)
    state = State(jnp.int32(step), {}, ())
    running.after(step, state, metrics, {"documents": 4, "tokens": 9})


def test_metrics_are_fetched_where_they_are_logged_alone(running, fetched):
    for step in range(1, STEPS + 1):
        take(running, step)
        assert len(running.finite._under_way) <= stopping.AHEAD
    assert fetched == [5, 10, 15, 20]


def test_a_step_without_positives_is_told(running, caplog):
    for anchors, said in ((0.5, 0), (0.0, 1), (0.0, 1)):
        running._log(5, {"train/loss": 1.0, "train/anchors": anchors})
        assert caplog.text.count("learnt nothing") == said


def test_the_first_bad_step_is_named_at_the_next_log(running, fetched):
    for step in range(1, 2 * EVERY):
        take(running, step, float("nan") if step >= BAD else 1.0)
    with pytest.raises(loop.NotFinite, match=f"step {BAD}: .*: document {BAD}"):
        take(running, 2 * EVERY)
    assert fetched == [EVERY]


def test_processes_agree_on_a_stop_every_few_steps(monkeypatch):
    asked = []
    gathered = lambda array: asked.append(array) or array[None]
    monkeypatch.setattr(stopping.multihost_utils, "process_allgather", gathered)
    monkeypatch.setattr(stopping.jax, "process_count", lambda: 2)
    monkeypatch.setattr(stopping.signals, "came", lambda: True)
    ask = stopping.asked
    found = {step: ask(step, False, step == 30) for step in range(1, 33)}
    monkeypatch.setattr(stopping.signals, "came", lambda: False)
    failed = ask(8, True, False)
    steps = [step for step, (stops, _) in found.items() if stops]
    assert steps == [8, 16, 24, 30, 32] and len(asked) == len(steps) + 1
    assert failed == (True, True) and not any(failed for _, failed in found.values())
