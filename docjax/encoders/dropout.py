"""Dropout whose mask of a row follows from the row's key alone.

A row is a segment. Its mask does not depend on the rows beside it, on the length it
is padded to, or on the device it lies on; so a gradient taken in micro-batches of any
size, on any number of devices, sees the masks of the whole batch.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

LEVELS = 256  # a mask spends one random byte on an element


def dropout(
    x: Float[Array, "n ..."], keys: Key[Array, " n"] | None, site: int, rate: float
) -> Float[Array, "n ..."]:
    """`x` with elements zeroed at `rate` and the rest scaled up; `x` without keys.

    `rate` is rounded to the next 1/256, and the scale is the exact inverse of the
    resulting share of kept elements, so the expectation is exactly `x`. `site` tells
    apart the places of a network that share a key.
    """
    if keys is None or dropped(rate) == 0:
        return x
    return jnp.where(kept(keys, site, x.shape[1:], rate), x * scale(rate), 0)


def kept(
    keys: Key[Array, " n"], site: int, shape: tuple[int, ...], rate: float
) -> Bool[Array, "n ..."]:
    """The mask of each row, True = kept; `shape` is that of one row.

    The element at an index is the same in every `shape`.
    """
    keys = jax.vmap(lambda key: jax.random.fold_in(key, site))(keys)
    return _bytes(keys, shape) >= dropped(rate)


def dropped(rate: float) -> int:
    """How many of 256 byte values drop an element."""
    return round(rate * LEVELS)


def scale(rate: float) -> float:
    """What kept elements are multiplied with."""
    return LEVELS / (LEVELS - dropped(rate))


def _bytes(keys: Key[Array, " n"], shape: tuple[int, ...]) -> Array:
    """Random bytes: a key for every index of the leading axes, then one row of bytes."""
    *leading, last = shape
    for size in leading:
        fold = jax.vmap(jax.random.fold_in, (None, 0))
        keys = jax.vmap(fold, (0, None))(keys.reshape(-1), jnp.arange(size))
    words = jax.vmap(lambda key: jax.random.bits(key, (-(-last // 4),), jnp.uint32))
    values = jax.lax.bitcast_convert_type(words(keys.reshape(-1)), jnp.uint8)
    return values.reshape(-1, *leading, values.shape[-2] * 4)[..., :last]
