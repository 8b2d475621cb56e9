"""MiniLM cut at more tokens than its own limit, on the corpora of training_pays.

    python -m benchmarks.first_tokens --data FOLDER --workdir runs/pays \
        --corpora r8 openstax cranfield --tokens 512

all-MiniLM-L6-v2 says that it reads 256 tokens, and has positions for 512. The tasks, splits
and seeds are those of `benchmarks/training_pays.py`, whose report cuts at the limit.
"""

import argparse
import dataclasses
import json
from pathlib import Path

import numpy as np
from absl import logging

import docjax
from benchmarks import training_pays
from docjax.model.task_data import FileData
from docjax.run import corpora, fields
from docjax.storage import atomic
from docjax.tasks import runner
from docjax.tasks.embeddings import NoLabels
from docjax.types import Task


def measured(corpus: str, flags: argparse.Namespace) -> dict[str, float]:
    """The means of the metrics over the seeds; kept in a file."""
    path = flags.workdir / f"first-{flags.tokens}-{corpus}.json"
    if not path.exists():
        model = docjax.load(training_pays.MINILM, dtype=flags.dtype, segments=1)
        limits = model.limits._replace(segment_tokens=flags.tokens)
        model = dataclasses.replace(model, limits=limits)
        configs = [
            fields.resolve(training_pays.config(corpus, flags, seed))
            for seed in flags.seeds
        ]
        data = FileData(model, corpora.source(configs[0]))  # encodes a document once
        scores = []
        for config in configs:
            tasks = {name: part.build() for name, part in config.tasks.items()}
            ready = {n: task for n, task in tasks.items() if _is_ready(task, data)}
            scores.append(runner.scores(ready, data, "test"))
        found = {
            metric: np.mean([of[f"eval/{metric}"] for of in scores])
            for metric in training_pays.METRICS
            if f"eval/{metric}" in scores[0]
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(path, json.dumps(found))
    return json.loads(path.read_text())


def _is_ready(task: Task, data: FileData) -> bool:
    """Whether the corpus has enough documents with labels, as in the runs."""
    try:
        task.check(data, "test")
    except NoLabels:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    corpora_known = training_pays.KNOWN
    parser.add_argument("--corpora", nargs="+", choices=corpora_known, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.set_defaults(variant="frozen", set=[])
    flags = parser.parse_args()
    logging.set_verbosity(logging.WARNING)
    print(f"| corpus | {training_pays.TITLES} |\n{'|---' * 7}|")
    for corpus in flags.corpora:
        found = measured(corpus, flags)
        cells = (f"{found[m]:.3f}" if m in found else "" for m in training_pays.METRICS)
        print(f"| {corpus} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
