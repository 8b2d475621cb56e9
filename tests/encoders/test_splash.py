"""Splash, run step by step here, gives the attention of the definition on a TPU."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractDevice, AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from docjax.encoders import attention as module
from docjax.encoders import blocks
from docjax.encoders.attention import attention
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.modernbert import ModernBert
from docjax.encoders.pooling import Mean
from docjax.encoders.splash import splash
from docjax.kernels import traced_for
from docjax.model.inference import _segment_vectors

WINDOWS = {
    "all": dict(reach=None, shared=0),
    "window": dict(reach=5, shared=0),
    "window and first tokens": dict(reach=140, shared=2),
}


def arrays(tokens):
    generator = np.random.default_rng(0)
    draw = lambda: jnp.asarray(generator.normal(size=(3, tokens, 2, 8)), jnp.float32)
    return draw(), draw(), draw()


@pytest.mark.parametrize("options", WINDOWS.values(), ids=WINDOWS)
def test_values_and_gradients_are_those_of_our_own_blocks(options):
    q, k, v = arrays(300)
    lengths = jnp.array([300, 7, 0])
    real = (jnp.arange(300) < lengths[:, None])[..., None, None]
    weigh = np.random.default_rng(1).normal(size=q.shape) * real

    def values_and_gradients(function):
        total = lambda *qkv: (function(*qkv) * weigh).sum()
        values = jnp.where(real, function(q, k, v), 0)
        return values, *jax.grad(total, (0, 1, 2))(q, k, v)

    ours = functools.partial(
        blocks.in_blocks, lengths=lengths, keys=None, pattern=blocks.Pattern(**options)
    )
    kernel = functools.partial(splash, lengths=lengths, interpret=True, **options)
    for got, expected in zip(
        values_and_gradients(kernel), values_and_gradients(ours), strict=True
    ):
        np.testing.assert_allclose(got, expected, atol=2e-5)
        assert (got[1, 7:] == 0).all() and (got[2] == 0).all()


def abstract(kind):
    """Eight devices of a kind, none of which exists."""
    auto = (AxisType.Auto,)
    return AbstractMesh((8,), ("data",), axis_types=auto, abstract_device=kind)


def lowered(tokens, dtype="bfloat16", **options):
    """The gradient's program for TPUs; each reads one row of two heads."""
    mesh = abstract(AbstractDevice("TPU v5 lite", 1, "tpu"))

    def total(q, k, v, lengths):
        assert traced_for().platform == "tpu"
        return attention(q, k, v, lengths, **options).astype(jnp.float32).sum()

    gradient = jax.shard_map(
        jax.grad(total, (0, 1, 2)),
        mesh=mesh,
        in_specs=P("data"),
        out_specs=P("data"),
        check_vma=False,
    )
    x = jax.ShapeDtypeStruct((8, tokens, 2, 64), dtype)
    lengths = jax.ShapeDtypeStruct((8,), jnp.int32)
    traced = jax.jit(gradient).trace(x, x, x, lengths)
    return traced.lower(lowering_platforms=("tpu",)).as_text()


@pytest.mark.parametrize(
    "tokens, options, kernels",
    [
        (module.WHOLE + 1, {}, 3),  # forward, and two for the gradient
        (200, dict(window=64, shared=1), 3),
        (200, dict(window=400), 0),
        (module.WHOLE, {}, 0),
        (200, dict(window=64, kernel="own"), 0),
        (200, dict(window=64, dtype="float32"), 0),
        (200, dict(window=64, keys=jax.random.key(0)[None], rate=0.1), 0),
    ],
    ids=["long", "window", "wide window", "short", "own", "float32", "dropout"],
)
def test_tpus_take_splash_for_windows_and_long_rows(tokens, options, kernels):
    assert lowered(tokens, **options).count("tpu_custom_call") == kernels


def test_inference_reads_windows_with_splash_on_tpus():
    """So its passes over segments are mapped over the devices."""
    mesh = abstract(AbstractDevice("TPU v5 lite", 1, "tpu"))
    sizes = dict(vocabulary=50, width=128, heads=2, hidden=16, layers=2)
    options = dict(window=32, pooling="mean", dtype="bfloat16")
    encoder = DocumentEncoder(ModernBert(**sizes, **options), Mean())
    params = jax.eval_shape(lambda: fresh_params(encoder, 0))["segment"]
    shape = lambda *sizes: jax.ShapeDtypeStruct(sizes, jnp.int32)
    given = shape(8, 512), shape(8), shape(8, 2)
    traced = _segment_vectors.trace(encoder.segment, mesh, None, params, *given)
    text = traced.lower(lowering_platforms=("tpu",)).as_text()
    assert text.count("tpu_custom_call") == 1  # the second layer has a window


def test_a_program_that_the_compiler_divides_has_no_splash():
    assert traced_for() is None  # outside of shard_map
    mesh = abstract(AbstractDevice("cpu", None, "cpu"))
    seen = []

    def read(x):
        seen.append(traced_for().platform)
        return x

    mapped = jax.shard_map(read, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    jax.jit(mapped).trace(jax.ShapeDtypeStruct((8,), jnp.float32))
    assert seen == ["cpu"]
