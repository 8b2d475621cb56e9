"""CoLDE's document encoder against torch: chunk attention and BiLSTM over many chunks.

    python -m benchmarks.chunk_encoder --chunks 200 --documents 8 --repeats 7

Two sections a document, chunks of width 768, a BiLSTM of 256 a direction and literal
chunk attention of 4 heads, as the paper has them; forward, and forward with backward.
torch has `torch.nn.LSTM` and `torch.nn.functional.scaled_dot_product_attention`. Both
run in turn on the same cores; prints the medians in seconds, and docjax's over torch's.
"""

import argparse
import statistics
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import torch

from benchmarks import tiny
from benchmarks.turns import in_turns
from docjax.encoders.chunks import ChunkEncoder
from docjax.types import Graphs

WIDTH, HEADS, HIDDEN = 768, 4, 512


class Torch(torch.nn.Module):
    """The same computation: attention to the next section, BiLSTM, projection."""

    def __init__(self):
        super().__init__()
        names = ("query", "key", "value", "output")
        dense = lambda: torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.dense = torch.nn.ModuleDict({name: dense() for name in names})
        self.lstm = torch.nn.LSTM(
            WIDTH, HIDDEN // 2, batch_first=True, bidirectional=True
        )
        self.project = torch.nn.Linear(HIDDEN, 256)

    def forward(self, sections):
        first, second = sections
        heads = lambda name, x: (
            self.dense[name](x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        )
        read = heads("query", first), heads("key", second), heads("value", second)
        taken = torch.nn.functional.scaled_dot_product_attention(*read)
        first = first + self.dense["output"](taken.transpose(1, 2).flatten(2))
        _, (last, _) = self.lstm(torch.cat([first, second]))
        states = torch.cat([last[0], last[1]], -1)
        return torch.nn.functional.normalize(self.project(states), dim=-1)


def systems(vectors: np.ndarray) -> dict[str, dict]:
    """Functions without arguments that compute once, by pass and library."""
    lengths = jnp.full(vectors.shape[:-1], 512)
    places = jnp.zeros((*lengths.shape, 2), int)
    encoder, given = ChunkEncoder(heads=HEADS, hidden=HIDDEN), jnp.asarray(vectors)
    apply = lambda p, x: encoder.apply(
        {"params": p}, x, lengths, places, Graphs(), method="views"
    )
    init = jax.jit(
        lambda: encoder.init(
            jax.random.key(0), given, lengths, places, Graphs(), method="views"
        )
    )
    params = init()["params"]
    forward = jax.jit(apply)
    both = jax.jit(jax.grad(lambda p, x: apply(p, x)[..., 0].sum(), argnums=(0, 1)))
    model, theirs = Torch(), torch.tensor(vectors, requires_grad=True)

    def torch_forward():
        with torch.no_grad():
            model(theirs)

    return {
        "forward": {
            "docjax": lambda: jax.block_until_ready(forward(params, given)),
            "torch": torch_forward,
        },
        "forward and backward": {
            "docjax": lambda: jax.block_until_ready(both(params, given)),
            "torch": lambda: model(theirs)[:, 0].sum().backward(),
        },
    }


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--documents", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=7)
    flags = tiny.parse(parser, given, "--chunks", 3, "--documents", 2, "--repeats", 1)
    shape = 2, flags.documents, flags.chunks, WIDTH
    vectors = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for name, both in systems(vectors).items():
        for compute in both.values():
            compute()  # compiles
        seconds = in_turns(both, flags.repeats)
        ours, theirs = (statistics.median(times) for times in seconds.values())
        print(
            f"{name}: docjax {ours:.3f} s, torch {theirs:.3f} s, {ours / theirs:.2f}x"
        )


if __name__ == "__main__":
    main()
