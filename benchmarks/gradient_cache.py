"""The gradient cache: 1,536 documents in the memory of 96, and the cost in time.

    python -m benchmarks.gradient_cache

Prints (1) the peak memory of one step at 96 and at 1,536 documents with the same
micro-batch, each in a process of its own, beside the memory of the segment vectors and
their gradients; (2) the time of a step, without activations and with all of them kept,
against the plain gradient for a batch that fits in memory, the median of alternating
steps. The passages are synthetic: 24 short passages a document for memory, 8 passages of
16 to 128 tokens for time.
"""

import argparse
import dataclasses
import functools
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from benchmarks import tiny
from benchmarks.turns import in_turns
from docjax.data import graphs
from docjax.data.packing import Layout, pack
from docjax.data.segments import OneEach, segments
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.graph_attention import GraphAttention
from docjax.encoders.transformer import Transformer
from docjax.objectives.infonce import infonce
from docjax.training import sharding
from docjax.training.gradient_cache import GradientCache
from docjax.training.memory import keep_freed
from docjax.training.plain_gradient import plain_gradient
from docjax.types import Frame, Segments, Targets, Units
from docjax.views.halves import Halves

MICROBATCH = 64


class Problem(NamedTuple):
    """An encoder of `layers` x `width` and documents of `passages` passages."""

    layers: int
    width: int
    heads: int
    passages: int
    lengths: tuple[int, int]  # tokens of a passage

    def step(self, documents: int):
        """A gradient cache, parameters and one batch."""
        shape = dict(layers=self.layers, heads=self.heads, hidden=4 * self.width)
        encoder = DocumentEncoder(
            Transformer(vocabulary=8192, width=self.width, **shape),
            GraphAttention(width=self.width),
        )
        generator = np.random.default_rng(0)
        views = [
            self.views(self.document(generator), generator) for _ in range(documents)
        ]
        most = self.lengths[1]
        widths = tuple(most * i // 4 for i in range(1, 5))
        layout = Layout(MICROBATCH, widths, most, graphs.full)
        batch = pack(views, layout, Targets(np.full(documents, -1, np.int32)))
        cache = GradientCache(encoder, infonce, sharding.mesh(), Halves.kinds)
        params = sharding.replicate(fresh_params(encoder, 0), cache.mesh)
        return cache, params, sharding.put_batch(batch, cache.mesh)

    def views(self, units: Units, generator: np.random.Generator) -> list[Segments]:
        """The two halves of a document, without special tokens."""
        frame = Frame(np.zeros(0, np.int32), np.zeros(0, np.int32), self.lengths[1])
        views = Halves()(units, generator)
        return [segments(view, OneEach(), frame) for view in views]

    def document(self, generator: np.random.Generator) -> Units:
        least, most = self.lengths
        lengths = generator.integers(least, most + 1, self.passages)
        return Units(
            tokens=generator.integers(5, 8192, lengths.sum()).astype(np.int32),
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            sections=np.zeros(self.passages, np.int32),
            edges=np.zeros((0, 2), np.int32),
        )


# Many short passages: the segment vectors are most of what grows with the batch.
MEMORY = Problem(layers=2, width=128, heads=4, passages=24, lengths=(8, 32))
TINY = Problem(layers=1, width=16, heads=2, passages=4, lengths=(8, 8))
SPEED = {
    "2 x 128": Problem(2, 128, 4, passages=8, lengths=(16, 128)),
    "MiniLM (6 x 384)": Problem(6, 384, 12, passages=8, lengths=(16, 128)),
}


def peak(problem: Problem, documents: int) -> float:
    """The peak resident memory, in MiB, of this process after two steps."""
    cache, params, batch = problem.step(documents)
    for _ in range(2):
        jax.block_until_ready(cache.gradient(params, batch, jax.random.key(0)))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peak_apart(documents: int) -> float:
    """That of MEMORY, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.gradient_cache"]
    done = subprocess.run(
        [*command, f"--documents={documents}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


def memory(problem: Problem, few: int, many: int, of: Callable[[int], float]) -> None:
    small, large = of(few), of(many)
    # Segment vectors and their gradients, each also gathered by document.
    vectors = 4 * (many - few) * problem.passages * problem.width * 4 / 2**20
    # And their gradient, and its transpose.
    scores = 3 * 4 * (many**2 - few**2) / 2**20
    print(f"{f'peak memory, {few:,} documents':30}{small:8.0f} MiB")
    print(f"{f'peak memory, {many:,} documents':30}{large:8.0f} MiB")
    print(f"growth                        {large - small:8.0f} MiB")
    print(f"segment vectors and gradients {vectors:8.0f} MiB")
    print(f"similarities of all documents {scores:8.0f} MiB")


def speed(name: str, problem: Problem, documents: int, repeats: int) -> None:
    cache, params, batch = problem.step(documents)
    key = jax.random.key(0)
    plain = jax.jit(lambda params, batch: plain_gradient(cache, params, batch, key))
    keeping = dataclasses.replace(cache, keep=len(batch.microbatches))
    runs = {
        "cache": lambda: cache.gradient(params, batch, key),
        "kept": lambda: keeping.gradient(params, batch, key),
        "plain": lambda: plain(params, batch),
    }
    for take in runs.values():
        jax.block_until_ready(take())  # compiles
    waited = {
        run: lambda take=take: jax.block_until_ready(take())
        for run, take in runs.items()
    }
    seconds = in_turns(waited, repeats)
    for run, times in seconds.items():
        ratio = statistics.median(
            a / b for a, b in zip(times, seconds["plain"], strict=True)
        )
        print(
            f"{name}, {documents} documents, {run}: {statistics.median(times):.2f} s, "
            f"{ratio:.2f} of plain (median of {repeats})",
            flush=True,
        )


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, help="only take steps of this size")
    parser.add_argument("--repeats", type=int, default=7)
    flags = tiny.parse(parser, given, "--repeats", 1)
    if flags.documents:
        print(peak(MEMORY, flags.documents))
    elif flags.tiny:
        memory(TINY, 2, 4, of=functools.partial(peak, TINY))
        speed("tiny", TINY, 4, flags.repeats)
    else:
        memory(MEMORY, 96, 1536, of=peak_apart)
        keep_freed()  # as training does; above it would count freed memory too
        for name, problem in SPEED.items():
            speed(name, problem, 32, flags.repeats)


if __name__ == "__main__":
    main()
