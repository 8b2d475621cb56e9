"""AdamW: the schedule at given steps, what decays, what is clipped. RMSprop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.errors import UserError
from docjax.training.optimizer import adamw, rmsprop

PARAMS = {
    "layer": {"kernel": jnp.full((2, 2), 3.0), "bias": jnp.full(2, 3.0)},
    "norm": {"scale": jnp.full(2, 3.0), "bias": jnp.full(2, 3.0)},
    "tokens": {"embedding": jnp.full((3, 2), 3.0)},
}


def updates(optimizer, gradients, steps: int) -> list:
    """The updates of some steps from the same parameters."""
    state, found, step = optimizer.init(PARAMS), [], jax.jit(optimizer.update)
    for _ in range(steps):
        update, state = step(gradients, state, PARAMS)
        found.append(update)
    return found


def ones():
    return jax.tree.map(jnp.ones_like, PARAMS)


@pytest.mark.parametrize(
    "steps, warmup, expected",
    [
        # Up to the full rate in 4 steps, then down in equal steps; never 0.
        (10, 0.4, [0.25, 0.4375, 0.625, 0.8125, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]),
        (4, 0.0, [1, 3 / 4, 2 / 4, 1 / 4]),
        (3, 0.3, [1, 1, 1 / 2]),
        (1, 0.1, [1]),
    ],
)
def test_the_learning_rate_climbs_and_decays_linearly(steps, warmup, expected):
    """With a constant gradient, Adam's update is the learning rate."""
    optimizer = adamw(steps, learning_rate=0.01, warmup=warmup, clip=1e9)
    found = [-u["layer"]["bias"][0] for u in updates(optimizer, ones(), steps)]
    np.testing.assert_allclose(found, 0.01 * np.array(expected), rtol=1e-4)


def test_after_the_last_step_the_learning_rate_is_zero():
    optimizer = adamw(3, learning_rate=0.01)
    (*_, last) = updates(optimizer, ones(), 4)
    assert abs(last["layer"]["bias"][0]) < 1e-9


def test_kernels_and_tables_decay_and_biases_and_norms_do_not():
    zeros = jax.tree.map(jnp.zeros_like, PARAMS)
    optimizer = adamw(10, learning_rate=0.01, warmup=0.0, weight_decay=0.1)
    (found,) = updates(optimizer, zeros, 1)
    decay = -0.01 * 0.1 * 3.0
    np.testing.assert_allclose(found["layer"]["kernel"], decay, rtol=1e-6)
    np.testing.assert_allclose(found["tokens"]["embedding"], decay, rtol=1e-6)
    for still in (found["layer"]["bias"], *found["norm"].values()):
        assert (still == 0).all()


def test_an_update_is_that_of_adam_with_a_clipped_gradient():
    """Two different gradients; moments by hand, beta 0.9 and 0.999, epsilon 1e-8."""
    optimizer = adamw(100, learning_rate=0.01, warmup=0.0, clip=1.0)
    state, first, second = optimizer.init(PARAMS), 0.0, 0.0
    update = jax.jit(optimizer.update)
    for t, size in enumerate((5.0, 0.01), start=1):
        gradients = jax.tree.map(lambda a, size=size: a * size, ones())
        found, state = update(gradients, state, PARAMS)
        norm = size * 16**0.5  # 16 numbers
        g = size * min(1.0, 1.0 / norm)
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
        step = (first / (1 - 0.9**t)) / ((second / (1 - 0.999**t)) ** 0.5 + 1e-8)
        rate = 0.01 * (1 - (t - 1) / 100)
        np.testing.assert_allclose(found["layer"]["kernel"], -rate * step, rtol=1e-4)


@pytest.mark.parametrize(
    "keywords, message",
    [
        (dict(warmup=1.0), "warmup 1.0"),
        (dict(warmup=-0.1), "warmup -0.1"),
        (dict(learning_rate=0.0), "learning_rate 0.0"),
        (dict(clip=0.0), "clip 0.0"),
    ],
)
def test_an_impossible_value_is_said_with_its_bounds(keywords, message):
    with pytest.raises(UserError, match=f"{message} .*mend --config.optimizer"):
        adamw(10, **keywords)


def test_rmsprop_takes_the_next_learning_rate_after_some_steps():
    """By hand: each step is -rate * gradient / (root of the mean square + 1e-7)."""
    optimizer = rmsprop(6, learning_rates=(0.1, 0.02), every=2)
    found = updates(optimizer, ones(), 6)
    square = 0.0
    for number, update in enumerate(found):
        square = 0.9 * square + 0.1
        rate = 0.1 if number < 2 else 0.02
        expected = -rate / (square**0.5 + 1e-7)
        np.testing.assert_allclose(update["norm"]["bias"], expected, rtol=1e-5)


@pytest.mark.parametrize("keywords", [dict(learning_rates=()), dict(every=0)])
def test_rmsprop_without_rates_or_steps_is_refused(keywords):
    with pytest.raises(UserError, match="mend --config.optimizer"):
        rmsprop(6, **keywords)
