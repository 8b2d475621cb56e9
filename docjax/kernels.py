"""Products of matrices and rows, laid out as the processor is fast at them.

XLA multiplies bfloat16 on a CPU's matrix units only if both factors lie row by row and
the sum comes out as float32; anything else, the transposed factors of the backward pass
included, takes a path many times slower. So transposes are carried out here, of the
narrower factor, and the compiler is kept from undoing that.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def product(x: Float[Array, "n i"], w: Float[Array, "i o"]) -> Float[Array, "n o"]:
    """x w, multiplied in the type of `x`; on a CPU the sum is float32.

    The gradient with respect to `w` has the type of `w`.
    """
    if x.dtype == jnp.bfloat16 and on_cpu():
        return _product(x, w)
    return jax.lax.dot(x, w.astype(x.dtype))


def on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def settle(x):
    """`x`, computed once: XLA's CPU compiler would repeat cheap sums at every use."""
    return jax.lax.optimization_barrier(x) if on_cpu() else x


def row_major(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """`x`, laid out row by row after a transpose, as the factor of a product must be."""
    # XLA does not see the transpose through the extra axis, and so carries it out.
    return settle(x[None]).reshape(x.shape) if on_cpu() else x


def row_sums(x: Float[Array, "*n d"]) -> Float[Array, "*n"]:
    """The sums along the last axis, which XLA adds one number after the other."""
    parts = jnp.split(x, 4, axis=-1) if x.shape[-1] % 4 == 0 else [x]
    return sum(parts) @ jnp.ones(parts[0].shape[-1], x.dtype)


def unit(vectors: Float[Array, "*s d"]) -> Float[Array, "*s d"]:
    """Vectors of length 1; zero stays zero."""
    square = (vectors**2).sum(-1, keepdims=True)
    return vectors / jnp.sqrt(jnp.maximum(square, 1e-24))


@jax.custom_vjp
def _product(x: Array, w: Array) -> Array:
    return _dot(x, settle(w.astype(x.dtype)))


def _forward(x, w):
    w = settle(w.astype(x.dtype))
    return _dot(x, w), (x, w)


def _backward(residuals, g):
    x, w = residuals
    g = settle(g.astype(x.dtype))
    dx = _dot(g, row_major(w.T)).astype(x.dtype)
    if x.shape[1] <= g.shape[1]:
        return dx, _dot(row_major(x.T), g)
    return dx, _dot(row_major(g.T), x).T


_product.defvjp(_forward, _backward)


def _dot(a: Array, b: Array) -> Array:
    return settle(jax.lax.dot(a, b, preferred_element_type=jnp.float32))
