"""Products and rows: their values, and which platform a program is made for."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax import kernels

PLATFORMS = ("cpu", "cuda", "tpu")


def program(function, *arrays, platform: str) -> str:
    """The program of a function as it is handed to the compiler of a platform."""
    traced = jax.jit(function).trace(*arrays)
    return traced.lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("platform", PLATFORMS)
def test_only_a_program_for_a_cpu_holds_values_back_from_the_compiler(platform):
    """The machine that lowers all three has a CPU alone."""
    x = jnp.ones((4, 8), jnp.bfloat16)
    for function in (kernels.materialize, kernels.row_major):
        held = "optimization_barrier" in program(function, x, platform=platform)
        assert held == (platform == "cpu")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_bfloat16_product_is_summed_to_float32_on_a_cpu_only(platform):
    x, w = jnp.ones((4, 8), jnp.bfloat16), jnp.ones((8, 16))
    text = program(kernels.product, x, w, platform=platform)
    (line,) = [line for line in text.splitlines() if "dot_general" in line]
    kind = "f32" if platform == "cpu" else "bf16"
    assert line.endswith(f"-> tensor<4x16x{kind}>")


@pytest.mark.parametrize("inner, outer", [(24, 16), (16, 24)])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_a_product_and_its_gradient_are_those_of_numpy(inner, outer, dtype):
    generator = np.random.default_rng(0)
    draw = lambda *shape: generator.normal(size=shape).astype(np.float32)
    x, w, g = draw(5, inner), draw(inner, outer), draw(5, outer)
    x, w, g = (np.array(jnp.asarray(a, dtype), np.float32) for a in (x, w, g))

    def total(x, w):
        return (kernels.product(x.astype(dtype), w) * g).sum()

    dx, dw = jax.jit(jax.grad(total, (0, 1)))(x, w)
    tolerance = dict(rtol=1e-5 if dtype == jnp.float32 else 1e-2, atol=1e-4)
    value = jax.jit(kernels.product)(jnp.asarray(x, dtype), w)
    np.testing.assert_allclose(value, x @ w, **tolerance)
    np.testing.assert_allclose(dx, g @ w.T, **tolerance)
    np.testing.assert_allclose(dw, x.T @ g, **tolerance)
    assert value.dtype == dw.dtype == jnp.float32


@pytest.mark.parametrize("platform", PLATFORMS)
def test_sums_of_rows_are_float32_on_every_platform(platform):
    text = program(kernels.row_sums, jnp.ones((4, 8)), platform=platform)
    assert "precision = [HIGHEST, HIGHEST]" in text


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 8)])
def test_layer_norm_and_its_gradient_are_those_of_the_formula(shape, biased):
    generator = np.random.default_rng(0)
    x = jnp.asarray(generator.normal(2.0, 3.0, shape), jnp.float32)
    weights = jnp.asarray(generator.normal(size=shape), jnp.float32)
    scale, bias = jnp.asarray(generator.normal(size=(2, shape[-1])), jnp.float32)
    bias = bias if biased else None

    def formula(x, scale, bias):
        centred = x - x.mean(-1, keepdims=True)
        out = centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 0.01) * scale
        return out if bias is None else out + bias

    ours = lambda *inputs: kernels.normalized(*inputs, 0.01)
    np.testing.assert_allclose(ours(x, scale, bias), formula(x, scale, bias), atol=1e-5)

    def gradient(function):
        value = lambda *inputs: (function(*inputs) * weights).sum()
        return jax.jit(jax.grad(value, (0, 1, 2)))(x, scale, bias)

    gradients = [gradient(ours), gradient(formula)]
    same = functools.partial(np.testing.assert_allclose, atol=2e-5)
    jax.tree.map(same, *gradients)
    assert (gradients[0][2] is None) == (not biased)
