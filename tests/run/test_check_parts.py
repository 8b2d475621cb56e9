"""A loss and an optimizer that give something else are refused before documents are read."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import pytest

import docjax
from docjax.config import shipped
from docjax.errors import UserError
from docjax.run import fields
from docjax.run.check_parts import check_parts

ZERO = jnp.zeros(())


def resolved(name: str = "graph_roberta", **changes: Any) -> fields.RunConfig:
    config = docjax.config.load(name, variant="smoke")
    for key, value in changes.items():
        config[key] = value
    return fields.resolve(config)


@pytest.mark.parametrize("name", shipped())
def test_what_docjax_ships_is_accepted(name):
    check_parts(resolved(name))


@pytest.mark.parametrize(
    "result, text",
    [
        (lambda v: v.sum(), "returns no loss with a dict of metrics"),
        (lambda v: (v.sum(), None), "returns no loss with a dict of metrics"),
        (lambda v: (v[0, :, 0], {}), "returns a loss that is no scalar of floats"),
        (lambda v: (jnp.int32(1), {}), "returns a loss that is no scalar of floats"),
        (lambda v: (v.sum(), {"x": v[0, 0]}), "returns the metric 'x', which is no sc"),
        (lambda v: (v.sum(), {"x": "high"}), "returns the metric 'x', which is no sc"),
        (lambda v: (v.sum(), {"loss": ZERO}), "returns a metric 'loss', a name that"),
    ],
)
def test_a_loss_that_returns_something_else_is_refused(result, text):
    config = resolved()
    part = config.objective.as_built(lambda vectors, targets: result(vectors))
    with pytest.raises(UserError) as error:
        check_parts(dataclasses.replace(config, objective=part))
    line = str(error.value)
    assert line.startswith(f"objective {part.fn} {text}") and "\n" not in line


@pytest.mark.parametrize(
    "node",
    [
        dict(fn="optax.cosine_decay_schedule", init_value=0.1, decay_steps=3),
        dict(
            fn="optax.cosine_decay_schedule", init_value=0.1, decay_steps=3, clip=None
        ),
        dict(fn="optax.lbfgs", learning_rate=0.1),
        dict(fn="docjax.training.optimizer.around"),
        dict(fn="docjax.training.optimizer.around", clip=None),
    ],
)
def test_an_optimizer_that_cannot_update_parameters_is_refused(node):
    with pytest.raises(UserError) as error:
        check_parts(resolved(optimizer=node))
    line = str(error.value)
    assert line.startswith(f"optimizer {node['fn']} cannot update") and "\n" not in line


def test_the_steps_of_a_schedule_may_be_texts_as_in_json():
    schedule = dict(fn="optax.piecewise_constant_schedule", init_value=1.0)
    schedule["boundaries_and_scales"] = {"1": 0.5}
    optimizer = dict(fn="optax.sgd", learning_rate=schedule, clip=None)
    config = resolved(optimizer=optimizer)
    check_parts(config)
    made, gradient = config.optimizer.built(10), {"a": jnp.ones(1)}
    state, rates = made.init(gradient), []
    for _ in range(3):
        updates, state = made.update(gradient, state)
        rates.append(-float(updates["a"][0]))
    assert rates == [1, 0.5, 0.5]
    assert config.to_json()["optimizer"] == optimizer
