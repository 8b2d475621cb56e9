"""Dropout: the share, the scale and the independence of its masks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.encoders.dropout import dropout, dropout_at, dropped, scale

SHAPE = 16, 40, 33  # a last axis that no word of four bytes fills
KEYS = jax.random.split(jax.random.key(0), SHAPE[0])
ONES = jnp.ones(SHAPE)


def share(rate: float) -> float:
    """The share of elements that is dropped."""
    return dropped(rate) / 256


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.3, 0.5, 0.9])
def test_values_are_zero_or_scaled_and_the_mean_stays(rate):
    found = np.asarray(dropout(ONES, KEYS, 3, rate), np.float64)
    p = share(rate)
    assert abs(p - rate) <= 1 / 512
    assert set(np.unique(found)) == {0.0, np.float32(scale(rate))}
    sigma = np.sqrt(p / (1 - p))  # of an element
    assert abs(found.mean() - 1) < 5 * sigma / np.sqrt(found.size)
    for axis in range(3):  # each row, and each index in a row
        rest = tuple({0, 1, 2} - {axis})
        count = found.size / found.shape[axis]
        assert np.abs(found.mean(rest) - 1).max() < 5 * sigma / np.sqrt(count)


def test_rows_and_sites_have_masks_of_their_own():
    p = share(0.3)
    a, b = (np.asarray(dropout(ONES, KEYS, site, 0.3)) == 0 for site in (0, 1))
    pairs = {"sites": (a, b), "rows": (a[1:], a[:-1]), "tokens": (a[:, 1:], a[:, :-1])}
    for name, (one, other) in pairs.items():
        sigma = np.sqrt(p**2 * (1 - p**2) / one.size)
        assert abs((one & other).mean() - p**2) < 5 * sigma, name


def test_the_mask_of_a_row_depends_on_its_key_alone():
    whole = dropout(ONES, KEYS, 2, 0.3)
    shorter = dropout(ONES[3:5, :7, :10], KEYS[3:5], 2, 0.3)
    assert (shorter == whole[3:5, :7, :10]).all()


def test_attention_in_blocks_drops_what_attention_of_all_drops():
    whole = dropout(jnp.ones((16, 2, 9, 33)), KEYS, 5, 0.3)
    queries, columns = jnp.array([0, 4, 8]), jnp.arange(6, 30)
    some = dropout_at(
        jnp.ones((16, 2, 3, 24)), KEYS, queries, columns, site=5, rate=0.3
    )
    assert (some == whole[:, :, queries][..., columns]).all()


@pytest.mark.parametrize("keys, rate", [(None, 0.3), (KEYS, 0.0), (KEYS, 0.001)])
def test_without_keys_or_rate_nothing_is_dropped(keys, rate):
    assert dropout(ONES, keys, 0, rate) is ONES
