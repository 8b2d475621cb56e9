"""How much of what a training step computes is padding, for the corpus of a run.

  python -m benchmarks.padding runs/demo/corpus --batch 64 --microbatch 4

Packs the first `--batches` batches of random halves as training does and prints the
share of token positions that hold no real token, the micro-batches of a step, and the
time one thread takes to pack it.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from docjax.data import graphs
from docjax.data.corpus import Corpus
from docjax.data.examples import Examples
from docjax.data.packing import Layout, padding
from docjax.data.segment_batches import Reader, TrainingBatches
from docjax.data.segments import OneEach
from docjax.data.tokenizer import load_tokenizer
from docjax.run.fields import read
from docjax.types import DOCUMENT
from docjax.views.halves import Halves


def training_batches(flags: argparse.Namespace) -> TrainingBatches:
    """Random halves of a run's training documents."""
    run, corpus, views = flags.corpus.parent, Corpus.open(flags.corpus), Halves()
    tokenizer, limit = load_tokenizer(run), read(run).limits.segment_tokens
    reader = Reader(
        corpora={DOCUMENT: corpus},
        frames={DOCUMENT: tokenizer.frame(limit)},
        views=views,
        cutter=OneEach(),
        units=flags.limit,
        most=None,
        seed=0,
    )
    train = np.array([split in ("train", None) for split in corpus.splits])
    rows = np.flatnonzero(train & (corpus.counts >= views.least_units))
    examples = Examples((DOCUMENT,), rows[:, None], np.full(len(rows), -1))
    widths = reader.widths(examples)
    layout = Layout(flags.microbatch, widths, limit, graphs.full)
    return TrainingBatches(reader, examples, flags.batch, layout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--batch", type=int, default=1536, help="documents")
    parser.add_argument("--microbatch", type=int, default=256, help="segments")
    parser.add_argument("--limit", type=int, default=50, help="units of a document")
    parser.add_argument("--batches", type=int, default=2)
    flags = parser.parse_args()
    dataset = training_batches(flags).dataset(flags.batches)
    started = time.perf_counter()
    found = [dataset[i][0] for i in range(flags.batches)]
    seconds = (time.perf_counter() - started) / flags.batches
    computed, real = np.sum([padding(one) for one in found], axis=0)
    print(
        f"batch {flags.batch}, micro-batch {flags.microbatch}: padding "
        f"{1 - real / computed:.1%}, {len(found[0].microbatches)} micro-batches, "
        f"{seconds:.2f} s to pack"
    )


if __name__ == "__main__":
    main()
