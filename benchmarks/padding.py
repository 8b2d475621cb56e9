"""The share of padding in a training step, and the number of compiled shapes.

  python -m benchmarks.padding runs/demo
  python -m benchmarks.padding runs/demo --batch 1536 --microbatch 256 --batches 2

Makes all batches of an epoch, or the first `--batches`, as the training of a run does.
Prints the share of token positions without a token, the number of shapes to compile,
the micro-batches of a step, and the seconds that one thread needs for a batch.
"""

import argparse
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks import tiny
from docjax import config as configs
from docjax.data.packing import padding
from docjax.objectives.masked_lm import MaskedLM
from docjax.run.fields import read
from docjax.run.prepare import prepare
from docjax.training.vector_trainer import training_batches


def begun() -> Path:
    """A run of made documents that has read its corpus."""
    config, run = configs.load("graph_roberta", variant="smoke"), tiny.workdir()
    source = "docjax.data.sources.jsonl.jsonl"
    config.source = dict(fn=source, path=str(tiny.documents()))
    prepare(config, run)
    return run


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("run", type=Path, help="a run directory")
    parser.add_argument("--batch", type=int, help="examples; the run's own")
    parser.add_argument("--microbatch", type=int, help="segments; the run's own")
    parser.add_argument("--batches", type=int, help="of an epoch; all")
    flags = tiny.parse(parser, given, begun)
    prepared = prepare(read(flags.run).to_json(), flags.run)
    config = dataclasses.replace(
        prepared.config,
        batch=flags.batch or prepared.config.batch,
        microbatch=flags.microbatch or prepared.config.microbatch,
    )
    objective = config.objective.built
    masked = objective if isinstance(objective, MaskedLM) else None
    batches = training_batches(dataclasses.replace(prepared, config=config), masked)
    steps = flags.batches or batches.epoch_steps
    dataset, made, shapes = batches.dataset(steps), [], set()
    counts = np.zeros(2, int)
    started = time.perf_counter()
    for step in range(steps):
        batch, _ = dataset[step]
        counts += padding(batch)
        shapes |= {one.tokens.shape for one in batch.microbatches}
        made.append(len(batch.microbatches))
    seconds = (time.perf_counter() - started) / steps
    computed, real = counts
    print(
        f"{steps} steps, batch {config.batch}, micro-batch {config.microbatch}: padding "
        f"{1 - real / computed:.1%}, {len(shapes)} shapes, "
        f"{np.mean(made):.0f} micro-batches a step, {seconds:.2f} s to make one"
    )


if __name__ == "__main__":
    main()
