"""How much of what a training step computes is padding, for the corpus of a run.

    python -m benchmarks.padding runs/demo/corpus --batch 64 --microbatch 4

Packs the first `--batches` batches of random halves as training does and prints the
mean share of token positions that hold no real token, the micro-batches of a step, and
the time one thread takes to pack it.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from docjax.data import graphs
from docjax.data import segment_batches as batches
from docjax.data.corpus import Corpus
from docjax.views.halves import Halves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--batch", type=int, default=1536, help="documents")
    parser.add_argument("--microbatch", type=int, default=256, help="segments")
    parser.add_argument("--limit", type=int, default=50, help="segments of a document")
    parser.add_argument("--batches", type=int, default=2)
    flags = parser.parse_args()
    corpus, views = Corpus.open(flags.corpus), Halves()
    train = np.array([split in ("train", None) for split in corpus.splits])
    spec = batches.TrainingBatches(
        corpus=corpus,
        documents=np.flatnonzero(train & (corpus.counts >= views.least_segments)),
        labels=np.full(len(corpus), -1),
        views=views,
        graph=graphs.full,
        batch=flags.batch,
        microbatch=flags.microbatch,
        limit=flags.limit,
        seed=0,
    )
    dataset, started = spec.dataset(flags.batches), time.perf_counter()
    found = [dataset[i][0] for i in range(flags.batches)]
    seconds = (time.perf_counter() - started) / flags.batches
    print(
        f"batch {flags.batch}, micro-batch {flags.microbatch}: padding "
        f"{np.mean([batches.padding(one) for one in found]):.1%}, "
        f"{len(found[0].microbatches)} micro-batches, {seconds:.2f} s to pack"
    )


if __name__ == "__main__":
    main()
