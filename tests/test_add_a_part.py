"""The code of docs/add-a-part.md on losses, optimizers and callbacks runs as it stands."""

import re
import sys
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import docjax
from docjax.errors import UserError
from docjax.objectives.facts import facts_of
from docjax.run import fields
from docjax.training.callbacks import Callbacks
from docjax.types import Targets

PAGE = (Path(__file__).parents[1] / "docs/add-a-part.md").read_text("utf-8")


def blocks(section: str) -> list[str]:
    """The Python code of a section of the page."""
    [text] = re.findall(
        rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL
    )
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_document_encoder_of_the_guide_reads_the_longest_segment():
    namespace: dict = {"__name__": "mylab.longest"}
    exec(blocks("A document encoder")[0], namespace)  # noqa: S102
    encoder = namespace["Longest"](width=4)
    vectors = np.random.default_rng(0).normal(size=(2, 3, 5)).astype(np.float32)
    lengths = np.array([[3, 9, 0], [7, 2, 4]])
    params = encoder.init(jax.random.key(0), vectors, lengths)
    found = encoder.apply(params, vectors, lengths)
    expected = encoder.apply(params, vectors[[0, 1], [1, 0]], method="query")
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.fixture
def margin(monkeypatch):
    module = types.ModuleType("mylab.margin")
    monkeypatch.setitem(sys.modules, "mylab", types.ModuleType("mylab"))
    monkeypatch.setitem(sys.modules, "mylab.margin", module)
    exec(blocks("A loss")[0], vars(module))  # noqa: S102
    return module.margin


def test_the_loss_of_the_guide_is_the_hinge_that_it_says(margin):
    vectors = np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32)
    related = np.zeros((5, 5), bool)
    related[0, 1] = True
    first, second = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    expected = 0.0
    for i in range(5):
        for j in range(5):
            if i != j and not related[i, j]:
                expected += (
                    max(0, 0.3 - first[i] @ second[i] + first[i] @ second[j]) / 5
                )
    targets = Targets(jnp.full(5, -1), jnp.asarray(related))
    found, metrics = margin(jnp.asarray(vectors), targets, width=0.3)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert 0 < metrics["missed"] <= 4
    assert facts_of(margin).similarity == "cosine"


def test_the_optimizer_of_the_guide_decays_kernels_alone():
    config = docjax.config.load("graph_roberta", variant="smoke")
    exec(blocks("An optimizer")[0], {"config": config})  # noqa: S102
    make = fields.resolve(config).optimizer.built
    optimizer = make(10)
    params = {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}
    state = optimizer.init(params)
    zeros = {name: jnp.zeros_like(array) for name, array in params.items()}
    for _ in range(2):  # the first step of the schedule has a rate of 0
        updates, state = optimizer.update(zeros, state, params)
    assert (updates["kernel"] < 0).all() and (updates["bias"] == 0).all()


def test_the_stamp_of_the_guide_changes_with_the_file(tmp_path):
    namespace: dict = {}
    exec(blocks("A source")[0], namespace)  # noqa: S102
    file = tmp_path / "texts.txt"
    file.write_text("a river\n")
    [document], before = namespace["lines"](file), namespace["stamp"](file)
    assert document.sections[0].text == "a river"
    file.write_text("a rocket\n")
    assert namespace["stamp"](file, content=True) != before


def test_an_optimizer_of_optax_is_clipped_unless_it_says_none():
    config = docjax.config.load("graph_roberta", variant="smoke")
    gradient, lengths = {"a": jnp.full(4, 10.0)}, []
    for clip in ({}, {"clip": 2.0}, {"clip": None}):
        config.optimizer = dict(fn="optax.sgd", learning_rate=1.0, **clip)
        optimizer = fields.resolve(config).optimizer.built(10)
        updates, _ = optimizer.update(gradient, optimizer.init(gradient))
        lengths.append(float(jnp.linalg.norm(updates["a"])))
    np.testing.assert_allclose(lengths, [1, 2, 20], rtol=1e-5)


def library(name: str, sent: list) -> types.SimpleNamespace:
    """The functions of a tracker that the guide calls, with the arguments that its
    version of 2025 names first: `sent` gets what they are given."""
    functions = {
        "wandb": dict(
            init=lambda entity=None, project=None, *, name=None, config=None: None,
            log=lambda data, step=None, commit=None: sent.append(data),
        ),
        "mlflow": dict(
            start_run=lambda run_id=None, experiment_id=None, run_name=None: None,
            log_metrics=lambda metrics, step=None: sent.append(metrics),
        ),
        "trackio": dict(
            init=lambda project, name=None, *, config=None: None,
            log=lambda metrics, step=None: sent.append(metrics),
        ),
    }
    return types.SimpleNamespace(**functions[name])


@pytest.mark.parametrize("number, name", [(1, "wandb"), (2, "mlflow"), (3, "trackio")])
def test_the_callbacks_of_the_guide_send_what_they_get(number, name, tmp_path):
    sent = []
    code = blocks("Callbacks")[number]
    namespace = {name: library(name, sent)}
    exec(code, namespace)  # noqa: S102
    [made] = [value for key, value in namespace.items() if key.startswith("To")]
    callbacks = Callbacks([made()])
    callbacks.begin({"batch": 8}, tmp_path)
    callbacks.step(3, {"train/loss": 0.5})
    callbacks.evaluation(3, {"eval/retrieval/dense/ndcg@10": 0.25})
    callbacks.end({})
    assert not callbacks.failure
    assert [list(metrics.values()) for metrics in sent] == [[0.5], [0.25]]
    assert name != "mlflow" or "@" not in repr(sent)  # which mlflow refuses


def test_a_callback_is_called_at_its_moments_and_its_error_is_kept(tmp_path, capsys):
    namespace: dict = {}
    exec(blocks("Callbacks")[0], namespace)  # noqa: S102
    callbacks = Callbacks([namespace["Notes"]()])
    callbacks.begin({}, tmp_path)
    callbacks.step(1, {"train/loss": 2.0})
    callbacks.evaluation(1, {"eval/a": 1.0})
    callbacks.end({})
    assert capsys.readouterr().out.splitlines()[1:] == [
        "1 2.0",
        "scores: ['eval/a']",
        "the end",
    ]
    callbacks.step(2, {})  # no train/loss: Notes raises
    line = r"callback Notes raised KeyError in step\(\) at step 2 \(<string>:6\): "
    assert re.fullmatch(line + "'train/loss'", callbacks.failure)
    with pytest.raises(UserError, match=line + ".*; saved") as error:
        callbacks.raise_failure("saved")
    assert isinstance(error.value.__cause__, KeyError)


@pytest.mark.parametrize(
    "callback, line",
    [
        (object(), "is no callback: give an object with a method begin, step"),
        (dict, "is no callback"),
        (type("Wrong", (), {"step": lambda self, step: None})(), "Wrong.step takes"),
    ],
)
def test_what_is_no_callback_is_refused_before_a_run(callback, line):
    with pytest.raises(UserError, match=line) as error:
        Callbacks([callback])
    assert "\n" not in str(error.value)
