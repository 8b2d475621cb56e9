"""The paper's pre-training step on an accelerator: speed, utilisation, memory.

    python benchmarks/pretrain_step.py --documents 1536 --microbatch 1024

The setting: 1,536 documents of 2 to 50 passages of about 100 words (130 tokens), the
shape of roberta-base, bfloat16, random halves, graph attention, InfoNCE, AdamW. Prints
documents/s, real tokens/s, peak memory, and model FLOPs utilisation. The utilisation is
the rate of the gradient's operations, on real tokens only and without the cache's extra
forward pass, over the measured rate of a large matrix product. No activations are kept.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

from docjax.data import graphs
from docjax.data.microbatches import bucket_widths
from docjax.data.packing import Layout, pack, padding
from docjax.data.segments import OneEach, segments
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.graph_attention import GraphAttention
from docjax.encoders.transformer import Transformer
from docjax.objectives.infonce import infonce
from docjax.training import optimizer as optimizer_lib
from docjax.training import sharding
from docjax.training.gradient_cache import GradientCache
from docjax.training.step import initial_state, make_step
from docjax.types import Frame, Segments, Targets, Units
from docjax.views.halves import Halves

PASSAGES = 50  # of a document at most
LIMIT = 250  # tokens of a passage


def document(generator: np.random.Generator, vocabulary: int) -> Units:
    """A document; numbers of passages are distributed as in web texts."""
    passages = int(np.clip(generator.lognormal(2.0, 0.9), 2, PASSAGES))
    lengths = np.clip(generator.normal(130, 22, passages), 12, LIMIT).astype(int)
    return Units(
        tokens=generator.integers(5, vocabulary, lengths.sum()).astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        sections=np.zeros(passages, np.int32),
        edges=np.zeros((0, 2), np.int32),
    )


def halves(units: Units, generator: np.random.Generator) -> list[Segments]:
    """The views of a document, without special tokens."""
    frame = Frame(np.zeros(0, np.int32), np.zeros(0, np.int32), LIMIT)
    views = Halves()(units, generator)
    return [segments(view, OneEach(), frame) for view in views]


def matrix_peak(size: int = 8192) -> float:
    """The operations/s of a bfloat16 product of random matrices."""
    a, b = jax.random.normal(jax.random.key(0), (2, size, size), jnp.bfloat16)
    b = b / size**0.5  # the product of a product stays of the same size
    product = jax.jit(lambda a, b: (a @ b).astype(jnp.bfloat16))
    jax.block_until_ready(product(a, b))
    started, count = time.perf_counter(), 20
    for _ in range(count):
        a = product(a, b)
    jax.block_until_ready(a)
    return count * 2 * size**3 / (time.perf_counter() - started)


def operations(encoder: Transformer, lengths: np.ndarray) -> float:
    """Multiply-adds x 2 of forward and backward over segments of these lengths.

    The last layer computes keys and values of all tokens, everything else only for the
    first token.
    """
    d, f, layers = encoder.width, encoder.hidden, encoder.layers
    tokens, count = lengths.sum(), len(lengths)
    linear = (layers - 1) * tokens * (4 * d * d + 2 * d * f)
    linear += tokens * 2 * d * d + count * (2 * d * d + 2 * d * f)
    attention = (layers - 1) * (lengths.astype(float) ** 2).sum() * 2 * d
    attention += tokens * 2 * d
    return 3 * 2 * (linear + attention)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1536)
    parser.add_argument("--microbatch", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=3)
    flags = parser.parse_args()
    segment = Transformer(
        layers=flags.layers,
        width=flags.width,
        heads=flags.width // 64,
        hidden=4 * flags.width,
        dropout=flags.dropout,
        dtype="bfloat16",
    )
    encoder = DocumentEncoder(segment, GraphAttention())
    mesh = sharding.mesh()
    cache = GradientCache(encoder, infonce, mesh, Halves.kinds)
    optimizer = optimizer_lib.adamw(1000)
    step = make_step(cache, optimizer)
    generator = np.random.default_rng(0)
    views = [
        halves(document(generator, segment.vocabulary), generator)
        for _ in range(flags.documents)
    ]
    lengths = np.concatenate([v.lengths for pair in views for v in pair])
    widths = bucket_widths(lengths)
    layout = Layout(flags.microbatch, widths, LIMIT, graphs.full)
    host = pack(views, layout, Targets(np.full(flags.documents, -1, np.int32)))
    computed, real = padding(host)
    batch = sharding.put_batch(host, mesh)
    state = sharding.replicate(initial_state(fresh_params(encoder, 0), optimizer), mesh)
    key = jax.random.key(0)
    seconds = []
    for _ in range(flags.steps + 1):
        started = time.perf_counter()
        state, metrics = step(state, batch, key)
        jax.block_until_ready(state)
        seconds.append(time.perf_counter() - started)
    best = float(np.median(seconds[1:]))
    peak = matrix_peak() * mesh.size
    stats = jax.local_devices()[0].memory_stats() or {}
    print(f"devices          {mesh.size} x {jax.devices()[0].device_kind}")
    print(f"documents        {flags.documents}, segments {len(lengths):,}")
    print(f"padding          {1 - real / computed:.3f} at {len(widths)} widths")
    print(f"first step       {seconds[0]:.1f} s with compilation")
    print(f"step             {best:.2f} s, loss {float(metrics['loss']):.3f}")
    print(f"documents/s      {flags.documents / best:.1f}")
    print(f"real tokens/s    {lengths.sum() / best:,.0f}")
    print(f"matrix peak      {peak / 1e12:.1f} TFLOP/s")
    print(f"utilisation      {operations(segment, lengths) / best / peak:.3f}")
    print(f"peak memory      {stats.get('peak_bytes_in_use', 0) / 2**30:.1f} GiB")


if __name__ == "__main__":
    main()
