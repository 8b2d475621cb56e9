"""Bar: a batch of 1,536 documents in the memory of 96, and what the cache costs.

    python benchmarks/gradient_cache.py

Prints (1) peak memory of one step at 96 and at 1,536 documents with the same
micro-batch, each in a process of its own, beside what the segment vectors and their
gradients take; (2) the time of a step against the plain gradient where that fits,
interleaved, the median of several. A small encoder, synthetic passages of 16 to 128
tokens, 8 a document.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time

import jax
import numpy as np

from docjax.data import batches, graphs
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.graph_attention import GraphAttention
from docjax.encoders.transformer import Transformer
from docjax.objectives.infonce import infonce
from docjax.training import sharding
from docjax.training.gradient_cache import GradientCache, plain_gradient
from docjax.types import Segments
from docjax.views.halves import Halves

WIDTH, PASSAGES, MICROBATCH = 128, 8, 64


def problem(documents: int):
    """A gradient cache, parameters and one batch."""
    encoder = DocumentEncoder(
        Transformer(vocabulary=8192, layers=2, width=WIDTH, heads=4, hidden=4 * WIDTH),
        GraphAttention(width=WIDTH),
    )
    generator = np.random.default_rng(0)
    views = [Halves()(document(generator), generator) for _ in range(documents)]
    batch = batches.pack(views, MICROBATCH, (32, 64, 96, 128), graphs.full)
    cache = GradientCache(encoder, infonce, sharding.mesh())
    params = sharding.replicate(fresh_params(encoder, 0), cache.mesh)
    return cache, params, sharding.put_batch(batch, cache.mesh)


def document(generator: np.random.Generator) -> Segments:
    lengths = generator.integers(16, 129, PASSAGES)
    return Segments(
        tokens=generator.integers(5, 8192, lengths.sum()).astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        sections=np.zeros(PASSAGES, np.int32),
        edges=np.zeros((0, 2), np.int32),
    )


def peak(documents: int) -> float:
    """MiB of the largest resident size of a process that takes two steps."""
    done = subprocess.run(
        [sys.executable, __file__, f"--documents={documents}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


def memory() -> None:
    small, large = peak(96), peak(1536)
    # Segment vectors, their gradients, and both gathered by document (25 % spare).
    vectors = 4 * 1.25 * (1536 - 96) * PASSAGES * WIDTH * 4 / 2**20
    print(f"peak memory, 96 documents     {small:8.0f} MiB")
    print(f"peak memory, 1,536 documents  {large:8.0f} MiB")
    print(f"growth                        {large - small:8.0f} MiB")
    print(f"segment vectors and gradients {vectors:8.0f} MiB")


def speed(documents: int, repeats: int) -> None:
    cache, params, batch = problem(documents)
    key = jax.random.key(0)
    plain = jax.jit(lambda params, batch: plain_gradient(cache, params, batch, key))
    runs = {
        "cache": lambda: cache.gradient(params, batch, key),
        "plain": lambda: plain(params, batch),
    }
    seconds = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            started = time.perf_counter()
            jax.block_until_ready(run())
            if repeat:
                seconds[name].append(time.perf_counter() - started)
    ratio = statistics.median(
        a / b for a, b in zip(seconds["cache"], seconds["plain"], strict=True)
    )
    for name, found in seconds.items():
        print(
            f"step of {documents} documents, {name}: {statistics.median(found):.2f} s"
        )
    print(f"cache / plain, median of {repeats}: {ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, help="only take steps of this size")
    parser.add_argument("--repeats", type=int, default=7)
    flags = parser.parse_args()
    if flags.documents:
        cache, params, batch = problem(flags.documents)
        for _ in range(2):
            jax.block_until_ready(cache.gradient(params, batch, jax.random.key(0)))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    memory()
    speed(32, flags.repeats)


if __name__ == "__main__":
    main()
