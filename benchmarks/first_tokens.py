"""MiniLM cut at more tokens than its own limit, on the corpora of training_pays.

    python -m benchmarks.first_tokens --data FOLDER --workdir runs/pays \
        --corpora openstax cranfield --dtype bfloat16

Makes the table of MiniLM cut at 512 tokens in docs/log. all-MiniLM-L6-v2 is set to
256 tokens, but has positions for 512. Tasks, splits and seeds are those of
`benchmarks/training_pays.py`, whose reports cut at the limit. What that script makes of
the data lies in --workdir.
"""

import argparse
import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import docjax
from benchmarks import runs, tiny, training_pays
from docjax.model.task_data import FileData
from docjax.tasks import runner
from docjax.tasks.embeddings import NoLabels
from docjax.types import Task

logger = logging.getLogger("docjax.benchmarks")


def measured(corpus: str, flags: argparse.Namespace) -> dict[str, float]:
    """The mean of each metric over the seeds."""
    model = docjax.load(flags.init, dtype=flags.dtype)
    limits = model.limits._replace(segment_tokens=flags.tokens, inference_segments=1)
    model = dataclasses.replace(model, limits=limits)
    configs = [training_pays.config(corpus, flags, seed) for seed in flags.seeds]
    # Encodes a document once.
    data = FileData(model, runs.source(configs[0]), warns=False)
    scores = []
    for config in configs:
        tasks = runs.tasks(config).items()
        ready = {name: task for name, task in tasks if _is_ready(task, data)}
        scores.append(runner.scores(ready, data, "test"))
    return {
        metric: np.mean([of_seed[f"eval/{metric}"] for of_seed in scores])
        for metric in training_pays.METRICS
        if f"eval/{metric}" in scores[0]
    }


def _is_ready(task: Task, data: FileData) -> bool:
    """Whether the labels are enough for a task; warns if they are not, as runs do."""
    try:
        task.check(data, "test")
    except NoLabels as error:
        logger.warning("left out: %s", error)
        return False
    return True


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    known = training_pays.KNOWN
    parser.add_argument("--corpora", nargs="+", choices=known, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.set_defaults(variant="frozen", set=[])
    runs.add_init(parser)
    sizes = "--corpora", "20news", "--seeds", 0
    flags = tiny.parse(parser, given, *tiny.TRAINING, *sizes)
    print(f"| corpus | {training_pays.TITLES} |\n{'|---' * 7}|")
    for corpus in flags.corpora:
        means = measured(corpus, flags)
        cells = (f"{means[m]:.3f}" if m in means else "" for m in training_pays.METRICS)
        print(f"| {corpus} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
