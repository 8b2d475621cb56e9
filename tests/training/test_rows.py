"""Row optimizers: against dense NumPy, and rows not in use stay as they are."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from docjax.errors import UserError
from docjax.training.rows import Adagrad, Adam, Gradient, merged

GENERATOR = np.random.default_rng(0)
TABLE = GENERATOR.normal(size=(6, 3)).astype(np.float32)
ROWS = np.array([4, 1, 4, 2])
VALUES = GENERATOR.normal(size=(4, 3)).astype(np.float32)
PAIRS = [Gradient(ROWS[:3], VALUES[:3]), Gradient(ROWS[3:], VALUES[3:])]


def test_merged_sums_the_values_of_a_row():
    rows, values = merged(PAIRS, 6)
    assert rows.tolist() == [1, 2, 4, 6]  # 6: none
    expected = np.stack([VALUES[1], VALUES[3], VALUES[0] + VALUES[2], 0 * VALUES[0]])
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_adagrad_scales_a_row_by_all_its_gradients():
    optimizer = Adagrad(learning_rate=0.5)
    table, squares = TABLE, optimizer.init(jnp.asarray(TABLE))
    expected, sums = TABLE.copy(), np.zeros(6)
    for decay in (1.0, 0.25):
        table, squares = jax.jit(optimizer.update)(table, squares, PAIRS, decay)
        for row, value in zip(ROWS, VALUES, strict=True):
            sums[row] += (value**2).mean()
        for row, value in zip(ROWS, VALUES, strict=True):
            expected[row] -= 0.5 * decay * value / np.sqrt(sums[row] + 1e-8)
    np.testing.assert_allclose(table, expected, rtol=1e-5)
    np.testing.assert_allclose(squares, sums, rtol=1e-5)


def test_adam_is_the_dense_one_where_all_rows_are_in_use():
    optimizer, dense = Adam(learning_rate=0.1), optax.adam(0.1)
    table, moments = TABLE, optimizer.init(jnp.asarray(TABLE))
    params, state = TABLE, dense.init(TABLE)
    order = np.array([3, 0, 5, 1, 4, 2])
    for step in range(3):
        values = TABLE * (step + 1) - 0.5
        pairs = [Gradient(order, values[order])]
        table, moments = jax.jit(optimizer.update)(table, moments, pairs, 1.0)
        updates, state = dense.update(values, state)
        params = optax.apply_updates(params, updates)
    np.testing.assert_allclose(table, params, rtol=1e-5)


@pytest.mark.parametrize("optimizer", [Adagrad(), Adam()])
def test_rows_not_in_use_keep_values_and_statistics(optimizer):
    statistics = optimizer.init(jnp.asarray(TABLE))
    table, after = jax.jit(optimizer.update)(TABLE, statistics, PAIRS, 1.0)
    idle = np.array([0, 3, 5])
    np.testing.assert_array_equal(table[idle], TABLE[idle])
    assert (np.asarray(table)[[1, 2, 4]] != TABLE[[1, 2, 4]]).all()
    parts = after if isinstance(after, tuple) else (after,)
    assert all(not np.asarray(part)[idle].any() for part in parts)


@pytest.mark.parametrize("kind", [Adagrad, Adam])
def test_a_learning_rate_of_0_is_refused(kind):
    with pytest.raises(UserError, match="learning_rate 0.0"):
        kind(learning_rate=0.0)
