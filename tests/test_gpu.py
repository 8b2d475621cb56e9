"""What only an NVIDIA GPU can show: cuDNN's attention, and two runs that must be alike.

    pytest tests/test_gpu.py

Skipped where JAX has no GPU.
"""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import docjax
from docjax.encoders.attention import attention
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.pooling import Mean
from docjax.encoders.transformer import Transformer

pytestmark = pytest.mark.skipif(
    jax.default_backend() != "gpu", reason="JAX has no GPU on this machine"
)
ROWS = 4


def arrays(tokens: int, dtype: jnp.dtype) -> list[jax.Array]:
    generator = np.random.default_rng(0)
    shape = (ROWS, tokens, 2, 32)
    return [jnp.asarray(generator.normal(size=shape), dtype) for _ in range(3)]


def fill_memory_with_nan(like: jax.Array) -> None:
    """What a kernel does not write is then NaN, if it gets memory of these sizes."""
    sizes = like.size, like.size // like.shape[-1]  # of values and of row sums
    kinds = like.dtype, jnp.float32
    jax.block_until_ready(
        [jnp.full(n, jnp.nan, kind) for n in sizes for kind in kinds for _ in range(64)]
    )


def values_and_gradients(q, k, v, lengths, kernel: str) -> list[np.ndarray]:
    """The values of the real queries, and the gradients of a weighted sum of them.

    What padding gets must be finite too: the next layer multiplies it.
    """
    real = (jnp.arange(q.shape[1]) < lengths[:, None])[..., None, None]
    weigh = np.random.default_rng(1).normal(size=q.shape) * real

    def total(*qkv):
        values = attention(*qkv, lengths, kernel=kernel)
        return (values * weigh).sum(), values

    gradient = jax.jit(jax.grad(total, (0, 1, 2), has_aux=True))
    compiled = gradient.lower(q, k, v).compile()
    assert ("__cudnn$fmha" in compiled.as_text()) == (kernel == "auto")
    fill_memory_with_nan(q)
    gradients, values = compiled(q, k, v)
    assert all(jnp.isfinite(x).all() for x in (values, *gradients))
    values = jnp.where(real, values, 0)
    return [np.asarray(x, np.float32) for x in (values, *gradients)]


@pytest.mark.parametrize("tokens", [32, 256, 512, 2048])
def test_cudnn_gives_the_values_and_gradients_of_the_plain_form(tokens):
    lengths = jnp.array([tokens, 7, 1, tokens - 1])
    got = values_and_gradients(*arrays(tokens, jnp.bfloat16), lengths, "auto")
    expected = values_and_gradients(*arrays(tokens, jnp.float32), lengths, "own")
    for a, b in zip(got, expected, strict=True):
        assert np.linalg.norm(a - b) < 0.02 * np.linalg.norm(b)


def test_cudnn_gives_padding_no_gradient_and_reads_none_of_it():
    tokens, lengths = 256, jnp.array([256, 7, 0, 200])
    given = arrays(tokens, jnp.bfloat16)
    padding = (jnp.arange(tokens) >= lengths[:, None])[..., None, None]
    loud = [jnp.where(padding, jnp.asarray(50, x.dtype), x) for x in given]
    quiet = values_and_gradients(*given, lengths, "auto")
    for a, b in zip(quiet, values_and_gradients(*loud, lengths, "auto"), strict=True):
        np.testing.assert_array_equal(a, b)
    for gradient in quiet[1:]:
        assert not np.asarray(jnp.where(padding, gradient, 0)).any()


@pytest.mark.parametrize("dtype, error", [("float32", 1e-5), ("bfloat16", 0.02)])
def test_an_encoder_gives_the_vectors_of_a_cpu(dtype, error):
    sizes = dict(vocabulary=100, positions=130, layers=2, width=64, heads=2, hidden=128)
    encoder = DocumentEncoder(Transformer(**sizes, dtype=dtype), Mean())
    params = fresh_params(encoder, 0)
    tokens = np.random.default_rng(0).integers(5, 100, (4, 128)).astype(np.int32)
    lengths = np.array([128, 3, 77, 1], np.int32)

    def vectors(device: jax.Device) -> np.ndarray:
        with jax.default_device(device):
            given = tokens, lengths, np.zeros((4, 2), np.int32)
            vectors_of = lambda p, *x: encoder.apply(
                {"params": p}, *x, method="segments"
            )
            placed = jax.device_put((params, *given), device)
            return np.asarray(jax.jit(vectors_of)(*placed), np.float32)

    got, expected = vectors(jax.devices()[0]), vectors(jax.devices("cpu")[0])
    assert np.linalg.norm(got - expected) < error * np.linalg.norm(expected)


@pytest.mark.parametrize("name", ["graph_roberta", "masked_lm"])
def test_two_runs_are_alike_to_the_last_bit(name: str, tmp_path: Path):
    environment = os.environ | {"XLA_FLAGS": "--xla_gpu_deterministic_ops=true"}
    runs = [tmp_path / run for run in ("one", "two")]
    for run in runs:
        command = f"-m docjax.main --config=configs/{name}.py:smoke --workdir={run}"
        subprocess.run(
            [
                *(sys.executable, *command.split()),
                "--config.encoder.segment.dtype=bfloat16",
            ],
            env=environment,
            check=True,
            cwd=Path(__file__).parents[1],
        )
    one, two = (docjax.load(run).params for run in runs)
    jax.tree.map(np.testing.assert_array_equal, one, two)
