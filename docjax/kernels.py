"""Matrix products, row sums and LayerNorm in the layout that is fast on each processor.

On a CPU, XLA multiplies bfloat16 on the matrix units only if both factors are row-major
and the result is float32. Any other product is many times slower, also the products
with transposed factors in the backward pass. So the functions here transpose the
narrower factor in memory and keep the compiler from undoing the transpose.

A program for a GPU or a TPU has no such transposes. In a `shard_map` the devices of its
mesh decide, and elsewhere the platform that a program is lowered for.

`benchmarks/encoder.py` measures the layouts and `materialize`, `benchmarks/words.py` the
row sums; docs/log has the times without them.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import AbstractDevice
from jaxtyping import Array, Float

EXACT = jax.lax.Precision.HIGHEST  # float32 products; TPUs and GPUs round by default


# The primitive does the same as `by_platform(x, cpu=optimization_barrier, default=unchanged)`, but
# JAX traces and lowers it faster, and a large encoder uses it hundreds of times.
_materialize = Primitive("materialize")
_materialize.def_impl(lambda x: x)
_materialize.def_abstract_eval(lambda x: x)
ad.deflinear(_materialize, lambda gradient: [materialize(gradient)])
batching.defvectorized(_materialize)
mlir.register_lowering(_materialize, lambda _, x: [x])
mlir.register_lowering(
    _materialize,
    mlir.lower_fun(jax.lax.optimization_barrier, multiple_results=False),
    platform="cpu",
)


def product(x: Float[Array, "n i"], w: Float[Array, "i o"]) -> Float[Array, "n o"]:
    """x w, multiplied in the type of `x`; a bfloat16 `x` gives a float32 product.

    A GPU and a TPU round a bfloat16 product to bfloat16; a float32 product is not
    rounded anywhere. The gradient with respect to `w` has the type of `w`.
    """
    if x.dtype == jnp.bfloat16:
        return _product(x, w)
    return jax.lax.dot(x, w.astype(x.dtype), precision=EXACT)


def by_platform(*arrays: Any, default: Callable, **functions: Callable) -> Any:
    """The function named "cpu", "cuda" or "tpu" in a program for that platform.

    `default` in any other. All return arrays of the same shapes and types.
    """
    if device := traced_for():
        platform = "cuda" if device.platform == "gpu" else device.platform
        return functions.get(platform, default)(*arrays)
    return jax.lax.platform_dependent(*arrays, default=default, **functions)


def traced_for() -> AbstractDevice | None:
    """The kind of device that a part of a `shard_map` is traced for; None elsewhere.

    A choice between two computations that is made while tracing leaves one of them in
    the program. Otherwise the backward pass is given what it would need for either.
    """
    mesh = jax.sharding.get_abstract_mesh()
    return mesh.abstract_device if mesh.manual_axes else None


def materialize(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """`x`, computed once; XLA's CPU compiler would compute cheap sums at every use."""
    return _materialize.bind(x)


def unchanged(x: Any) -> Any:
    return x


def row_major(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """`x` in row-major layout after a transpose, as a factor of a product must be."""
    # The extra axis hides the transpose from XLA, so XLA carries the transpose out.
    return materialize(x[None]).reshape(x.shape)


def row_sums(x: Float[Array, "*n d"]) -> Float[Array, "*n"]:
    """The sums along the last axis, as a product: XLA's own sum adds single numbers."""
    parts = jnp.split(x, 4, axis=-1) if x.shape[-1] % 4 == 0 else [x]
    ones = jnp.ones(parts[0].shape[-1], x.dtype)
    return jnp.matmul(sum(parts), ones, precision=EXACT)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def normalized(
    x: Float[Array, "*n d"],
    scale: Float[Array, " d"],
    bias: Float[Array, " d"] | None,
    epsilon: float,
) -> Float[Array, "*n d"]:
    """LayerNorm. Its own backward pass takes a CPU a third of the time of autodiff's,
    which computes each row again for every sum over the rows."""
    return _normalized(x, scale, bias, epsilon)[0]


def unit(vectors: Float[Array, "*s d"]) -> Float[Array, "*s d"]:
    """Vectors of length 1; zero stays zero."""
    square = (vectors**2).sum(-1, keepdims=True)
    return vectors / jnp.sqrt(jnp.maximum(square, 1e-24))


def _normalized(x, scale, bias, epsilon):
    x = materialize(x)
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    inverse = jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + epsilon)
    out = centred * inverse * scale
    out = out if bias is None else out + bias
    return materialize(out), (x, mean, inverse, scale, bias)


def _of_normalized(epsilon, residuals, g):
    x, mean, inverse, scale, bias = residuals
    g, rows = materialize(g), tuple(range(g.ndim - 1))
    unscaled = (x - mean) * inverse
    inner = g * scale
    along = (inner * unscaled).mean(-1, keepdims=True)
    dx = inverse * (inner - inner.mean(-1, keepdims=True) - unscaled * along)
    dscale = materialize(g * unscaled).sum(rows)
    return materialize(dx), dscale, None if bias is None else g.sum(rows)


normalized.defvjp(_normalized, _of_normalized)


@jax.custom_vjp
def _product(x: Array, w: Array) -> Array:
    return _forward(x, w)[0]


def _forward(x, w):
    w = materialize(w.astype(x.dtype))
    return by_platform(x, w, cpu=_dot, default=_rounded_dot), (x, w)


def _backward(residuals, g):
    x, w = residuals
    g = materialize(g.astype(x.dtype))
    factors = g, row_major(w.T)
    dx = by_platform(*factors, cpu=_dot, default=_rounded_dot).astype(x.dtype)
    if x.shape[1] <= g.shape[1]:
        return dx, _dot(row_major(x.T), g)
    return dx, _dot(row_major(g.T), x).T


_product.defvjp(_forward, _backward)


def _dot(a: Array, b: Array) -> Array:
    return materialize(jax.lax.dot(a, b, preferred_element_type=jnp.float32))


def _rounded_dot(a: Array, b: Array) -> Array:
    # Half the bytes of a float32 product, which a GPU would write and read back.
    return jax.lax.dot(a, b).astype(jnp.float32)
