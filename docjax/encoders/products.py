"""Matrix products of a dense layer, in the precision that the processor is fast at.

On a CPU, bfloat16 products are fast only when both factors lie row by row and the sum
comes out as float32; XLA gives its slow path anything else, the transposed factors of
the backward pass included. So the transposes are made here, of the narrower factor.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

PRECISIONS = ("float32", "bfloat16_3x")
Terms = tuple[Array, ...]


def product(
    x: Float[Array, "n i"], w: Float[Array, "i o"], precision: str = "float32"
) -> Float[Array, "n o"]:
    """x w. A bfloat16 `x` rounds `w` to bfloat16 too; the sum is float32 on a CPU.

    "bfloat16_3x" takes a float32 product as three products of bfloat16 (each factor
    as the sum of two: high high + high low + low high), with a relative error of
    about 4e-6; it is faster than float32 only on a CPU with bfloat16 matrix units.
    """
    if not on_cpu():
        return jax.lax.dot(x, w.astype(x.dtype))
    if x.dtype == jnp.bfloat16:
        return _product(x, w, 1)
    return _product(x, w, 2) if precision == "bfloat16_3x" else jax.lax.dot(x, w)


def on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def settle(x):
    """`x`, computed once: XLA's CPU compiler would repeat cheap sums at every use."""
    return jax.lax.optimization_barrier(x) if on_cpu() else x


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _product(x: Array, w: Array, count: int) -> Array:
    return _dot(_terms(x, count), _terms(w, count))


def _forward(x, w, count):
    factors = _terms(x, count), _terms(w, count)
    return _dot(*factors), (*factors, jnp.zeros((), x.dtype))


def _backward(count, residuals, g):
    x, w, kind = residuals
    g = _terms(g, count)
    dx = _dot(g, _transposed(w)).astype(kind.dtype)
    if x[0].shape[1] <= g[0].shape[1]:
        return dx, _dot(_transposed(x), g)
    return dx, _dot(_transposed(g), x).T


_product.defvjp(_forward, _backward)


def _terms(x: Array, count: int) -> Terms:
    """`count` bfloat16 arrays that add up to `x`."""
    terms = []
    for _ in range(count):
        # Not a plain cast and back, which XLA may take for nothing.
        high = jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)
        terms.append(settle(high.astype(jnp.bfloat16)))
        x = x - high
    return tuple(terms)


def _transposed(terms: Terms) -> Terms:
    return tuple(settle(term.T) for term in terms)


def _dot(a: Terms, b: Terms) -> Array:
    """The sum of all products but those of two low terms."""
    pairs = [(i, j) for i in range(len(a)) for j in range(len(b)) if i + j < len(a)]
    return sum(
        jax.lax.dot(a[i], b[j], preferred_element_type=jnp.float32) for i, j in pairs
    )
