"""Dropout: the key of a row alone determines the mask of the row.

A row is a segment. Its mask does not depend on the neighbouring rows, the padded length
or the device. So micro-batches of any size on any number of devices see the same masks
as the whole batch.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

LEVELS = 256  # a mask spends one random byte on an element
GOLDEN = np.uint32(0x9E3779B9)  # 2^32 / golden ratio: spreads small numbers


def dropout(
    x: Float[Array, "n ..."], keys: Key[Array, " n"] | None, site: int, rate: float
) -> Float[Array, "n ..."]:
    """`x` with elements zeroed at `rate` and the rest scaled up; `x` without keys.

    `rate` is rounded to the nearest 1/256. The scale is the exact inverse of the share
    of kept elements, so the expectation is exactly `x`. `site` numbers the dropout
    layers of a network that share a key.
    """
    if keys is None or dropped(rate) == 0:
        return x
    return _scaled(x, kept(keys, site, x.shape[1:], rate), scale(rate))


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _scaled(x: Float[Array, "*s"], mask: Bool[Array, "*s"], by: float) -> Array:
    """`x * by` where the mask is true, and 0 elsewhere.

    Its own backward pass needs the mask alone; autodiff would keep an array of zeros.
    """
    return jnp.where(mask, x * by, 0)


_scaled.defvjp(
    lambda x, mask, by: (_scaled(x, mask, by), mask),
    lambda by, mask, gradient: (jnp.where(mask, gradient * by, 0), None),
)


def kept(
    keys: Key[Array, " n"], site: int, shape: tuple[int, ...], rate: float
) -> Bool[Array, "n ..."]:
    """The mask of each row, True = kept; `shape` is that of one row.

    The element at an index is the same in every `shape`.
    """
    return _bytes(_state(keys, site), shape) >= dropped(rate)


def dropout_at(
    x: Float[Array, "n h s c"],
    keys: Key[Array, " n"],
    queries: Int[Array, " s"],
    columns: Int[Array, " c"],
    *,
    site: int,
    rate: float,
) -> Float[Array, "n h s c"]:
    """Attention weights of these queries and keys with dropout, as `kept` masks them."""
    state = _state(keys, site)
    for index in (jnp.arange(x.shape[1]), queries, columns // 4):
        state = _mix(state[..., None] + (index + 1).astype(jnp.uint32) * GOLDEN)
    values = (state >> (8 * (columns % 4)).astype(jnp.uint32)) & 255
    return jnp.where(values >= dropped(rate), x * scale(rate), 0)


def dropped(rate: float) -> int:
    """The number of byte values, of 256, that drop an element."""
    return round(rate * LEVELS)


def scale(rate: float) -> float:
    """The factor that multiplies kept elements."""
    return LEVELS / (LEVELS - dropped(rate))


def _state(keys: Key[Array, " n"], site: int) -> UInt32[Array, " n"]:
    """Both words of each key and the site, mixed into one word."""
    high, low = jnp.moveaxis(jax.random.key_data(keys), -1, 0)
    return _mix((_mix(high) ^ low) + jnp.uint32(site) * GOLDEN)


def _bytes(state: UInt32[Array, " n"], shape: tuple[int, ...]) -> Array:
    """Random bytes, hashed from the row's state and the index in each axis.

    A generator made for simulation would cost more than the layer it masks.
    """
    *leading, last = shape
    for size in (*leading, -(-last // 4)):
        index = jnp.arange(1, size + 1, dtype=jnp.uint32)
        state = _mix(state[..., None] + index * GOLDEN)
    values = jax.lax.bitcast_convert_type(state, jnp.uint8)
    return values.reshape(*values.shape[:-2], -1)[..., :last]


def _mix(x: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    """Every bit of the result depends on every bit of x (MurmurHash3's finalizer)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)
