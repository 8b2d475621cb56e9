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
from collections.abc import Sequence
from pathlib import Path

from ml_collections import ConfigDict

import docjax
from benchmarks import runs, tiny
from docjax import config as config_lib
from docjax.model.task_data import FileData
from docjax.parts import named
from docjax.tasks.clustering import Clustering

SYSTEMS = ("minilm-512", "minilm", "scratch")


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
        found.update_from_flattened_dict(dict(flags.set))
        return found
    found.init = flags.init
    found.encoder.frozen = "segment/"
    found.encoder.segment.update(pooling=None, normalize=True)  # pooling: as init
    found.encoder.document.width = 512  # the paper's
    found.objective.temperature = 0.1
    found.batch = 512
    found.epochs = 4
    found.update_from_flattened_dict(dict(flags.set))
    return found


def truncated(flags: argparse.Namespace) -> dict[str, float]:
    """MiniLM on the first 512 tokens."""
    model = docjax.load(flags.init, dtype=flags.dtype)
    limits = model.limits._replace(segment_tokens=512, inference_segments=1)
    model = dataclasses.replace(model, limits=limits)
    data = FileData(model, runs.source(config("scratch", flags, 0)), warns=False)
    test = "validation" if flags.validate else "test"
    return Clustering().score(data.labelled("train"), data.labelled(test))


def measured(flags: argparse.Namespace, system: str, seed: int) -> dict[str, dict]:
    """The metrics of a system with a seed, kept in a file."""
    name = "-".join(
        [system, str(seed), *(f"{k}={json.dumps(v)}" for k, v in flags.set)]
    )
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
        runs.begin(run, flags.workdir.glob(f"{system}-*"), baselines=False)
        lines = runs.trained(config(system, flags, seed), run)
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


def parse(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    parser.add_argument("--graph", choices=("full", "section"), default="full")
    parser.add_argument("--holdout", action="store_true", help="split by chapter")
    parser.add_argument("--validate", action="store_true", help="without test data")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--dtype", default="float32")
    runs.add_init(parser)
    runs.add_set(parser)
    sizes = "--path", tiny.documents, "--workdir", tiny.workdir, "--seeds", 0
    sizes += "--init", tiny.checkpoint, "--systems", "minilm-512", "minilm"
    return tiny.parse(parser, given, *sizes, "--set", "batch=16", "epochs=1")


def main(given: Sequence[str] | None = None) -> None:
    flags = parse(given)
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
    main()
