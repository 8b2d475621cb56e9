"""How much do vectors lose when they are cut? Trained whole, and for several widths.

    python -m benchmarks.widths --data FOLDER --workdir runs/widths --seeds 0 1 2

CISI (nDCG@10) and 20 Newsgroups (NMI, accuracy) with `configs/graph_roberta.py:frozen`,
MiniLM frozen. Rows: the recipe; with `objective.widths`; with
`encoder.document.components`; with both. Runs lie under --workdir; the same command
resumes them.
"""

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from ml_collections import ConfigDict

import docjax
from benchmarks import runs, tiny
from docjax import config as configs
from docjax.model.task_data import FileData
from docjax.tasks.runner import scores

WIDTHS = (512, 320, 256, 128, 64)
METRICS = {
    "cisi": ("eval/retrieval/dense/ndcg@10",),
    "20news": ("eval/clustering/nmi", "eval/classification/accuracy"),
}


ROWS = {  # the widths that training knows, and whether vectors are rotated
    "the recipe": ((), False),
    "widths": (WIDTHS, False),
    "components": ((), True),
    "both": (WIDTHS, True),
}


def config(corpus: str, row: str, flags: argparse.Namespace, seed: int) -> ConfigDict:
    """The recipe of a corpus with what a row changes."""
    found = configs.load("graph_roberta", variant="frozen")
    if corpus == "cisi":
        path = flags.data / "cisi"
        found.source.path = str(path / "corpus.jsonl.xz")
        task = dict(fn="docjax.tasks.retrieval.Retrieval", path=str(path))
        found.tasks = dict(retrieval=task)
    else:
        found.source.path = str(flags.data / "20news.jsonl.xz")
        found.tasks.clustering.seed = seed
    found.objective.widths, found.encoder.document.components = ROWS[row]
    found.init, found.seed = flags.init, seed
    found.update_from_flattened_dict(dict(flags.set))
    return found


def by_width(
    corpus: str, row: str, flags: argparse.Namespace, seed: int
) -> dict[str, list[float]]:
    """The metrics of a run at its full width and at each narrower one."""
    run = flags.workdir / f"{corpus}-{row.replace(' ', '_')}-{seed}"
    path = run / "by_width.json"
    if path.exists():
        return json.loads(path.read_text())
    runs.begin(run, flags.workdir.glob(f"{corpus}-*"), baselines=False)
    asked = config(corpus, row, flags, seed)
    runs.trained(asked, run)
    whole = FileData(docjax.load(run), runs.source(asked))
    found, tasks = {}, runs.tasks(asked)
    for width in (whole.model.width, *WIDTHS):
        if width > whole.model.width:
            continue
        metrics = scores(tasks, cut(whole, width), "test")
        found[str(width)] = [metrics[name] for name in METRICS[corpus]]
    path.write_text(json.dumps(found))
    return found


def cut(data: FileData, width: int) -> FileData:
    """The data with vectors of at most `width` numbers; what is read is not read again."""
    if width >= data.model.width:
        return data
    model = dataclasses.replace(data.model, truncate_dim=width)
    kept = {name: vector[:width] for name, vector in data.kept.items()}
    return dataclasses.replace(data, model=model, kept=kept)


def table(corpus: str, flags: argparse.Namespace) -> None:
    for row in flags.rows:
        found = [by_width(corpus, row, flags, seed) for seed in flags.seeds]
        for number, metric in enumerate(METRICS[corpus]):
            means = [np.mean([of[width][number] for of in found]) for width in found[0]]
            cells = " | ".join(f"{mean:.3f}" for mean in means)
            print(f"| {corpus} | {metric} | {row} | {cells} |", flush=True)


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--corpora", nargs="+", choices=METRICS, default=[*METRICS])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=[*ROWS])
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    runs.add_init(parser)
    runs.add_set(parser)
    sizes = "--rows", "components", "--seeds", 0, "--set", "steps=2"
    flags = tiny.parse(parser, given, *tiny.TRAINING, *sizes, "--corpora", "cisi")
    print(f"| corpus | metric | system | 640 | {' | '.join(map(str, WIDTHS))} |")
    print("|" + "---|" * (4 + len(WIDTHS)), flush=True)
    for each in flags.corpora:
        table(each, flags)


if __name__ == "__main__":
    main()
