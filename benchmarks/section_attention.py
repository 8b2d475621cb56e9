"""What does attention between sections add to the mean? Both are scored in one run.

    python -m benchmarks.section_attention --data FOLDER --workdir runs/attention \
        --corpora openstax kernel help chapters --seeds 0 1 2

Each corpus (of `benchmarks/training_pays.py`) is trained on with
`configs/graph_roberta.py:frozen` and a frozen MiniLM. Its mean learns as if there were no
attention, so the trained parameters without the branch are the recipe without attention.
A row has the gain of the attention over this mean, and whether the run keeps it. A corpus
whose documents have no sections has no row: the run trains no attention.
"""

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import docjax
from benchmarks import runs, tiny, training_pays
from docjax.keep import Judged
from docjax.run.scoring import Scoring

METRICS = {
    "NMI": "eval/clustering/nmi",
    "purity": "eval/clustering/purity",
    "accuracy": "eval/classification/accuracy",
    "10-shot": "eval/few_shot/accuracy",
}
PREFIX = "benchmarks.section_attention."


@dataclasses.dataclass(frozen=True)
class Scored(Judged):
    """`Judged`, which also writes the scores without and with the branch."""

    def choose(self, run, mesh, start, trained):
        kept = super().choose(run, mesh, start, trained)
        if run.encoder.nested:
            mean = run.encoder.document.without_branch(trained)
            scoring = Scoring(run, mesh)
            scores = {"mean": scoring(mean), "attention": scoring(trained)}
            path = run.run / "attention.json"
            path.write_text(json.dumps(scores | {"keeps": kept.name}))
        return kept


def measured(corpus: str, flags: argparse.Namespace, seed: int) -> dict | None:
    """The scores of a run; None if its documents have no sections."""
    run = flags.workdir / f"{corpus}-{seed}"
    config = training_pays.config(corpus, flags, seed)
    config.keep = dict(fn=f"{PREFIX}Scored")
    runs.begin(run, flags.workdir.glob(f"{corpus}-*"), baselines=True)
    if not runs.is_done(run):
        docjax.train(config, run, allow=PREFIX)
    path = run / "attention.json"
    return json.loads(path.read_text()) if path.exists() else None


def parse(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--data", type=Path, required=True)
    add("--workdir", type=Path, required=True)
    known, chosen = training_pays.KNOWN, ("openstax", "kernel", "help", "chapters")
    add("--corpora", nargs="+", choices=known, default=chosen)
    add("--seeds", nargs="+", type=int, default=(0, 1, 2))
    runs.add_init(parser)
    runs.add_set(parser)
    sizes = "--corpora", "20news", "--seeds", 0, "--set", "steps=2"
    return tiny.parse(parser, given, *tiny.TRAINING, *sizes)


def main(given: Sequence[str] | None = None) -> None:
    flags = parse(given)
    flags.variant = "frozen"
    print(f"| corpus, seed | kept | {' | '.join(METRICS)} |\n|---|---|---|---|---|---|")
    for corpus in flags.corpora:
        gains = []
        for seed in flags.seeds:
            scores = measured(corpus, flags, seed)
            if scores is None:
                print(f"{corpus}, seed {seed}: the documents have no sections")
                continue
            names = METRICS.values()
            pairs = [(scores["attention"][n], scores["mean"][n]) for n in names]
            gains.append([after - before for after, before in pairs])
            cells = " | ".join(f"{a:.3f} ({a - b:+.3f})" for a, b in pairs)
            print(f"| {corpus}, {seed} | {scores['keeps']} | {cells} |", flush=True)
        if gains:
            cells = " | ".join(f"{gain:+.4f}" for gain in np.mean(gains, axis=0))
            print(f"| {corpus}, mean gain | | {cells} |", flush=True)


if __name__ == "__main__":
    main()
