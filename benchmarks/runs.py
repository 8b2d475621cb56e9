"""What the benchmarks that train share: MiniLM, fields of the command line, and runs."""

import argparse
import functools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

import docjax
from benchmarks import tiny_transformer
from docjax.parts import named
from docjax.types import Document, Task

MINILM = str(tiny_transformer.MINILM)


def add_init(parser: argparse.ArgumentParser) -> None:
    """Adds --init, the transformer that is read or trained."""
    parser.add_argument("--init", default=MINILM, help="a transformer (MiniLM)")


def add_set(parser: argparse.ArgumentParser) -> None:
    """Adds --set, the fields of a config that get other values."""
    add = parser.add_argument
    add("--set", nargs="+", type=_field, default=[], metavar="FIELD=JSON")


def _field(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    return name, json.loads(value)


def is_done(run: Path) -> bool:
    """Whether a run has ended: its report is the last that is written."""
    return (run / "report/index.html").exists()


def trained(config: ConfigDict, run: Path) -> list[dict[str, float]]:
    """Trains a config, unless its run has ended; the lines of its metrics."""
    if not is_done(run):
        docjax.train(config, run)
    return metrics(run)


def metrics(run: Path) -> list[dict[str, float]]:
    """The lines of a run's metrics, with their step."""
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def begin(run: Path, others: Iterable[Path], baselines: bool) -> None:
    """Gives a new run what another run has read of the corpus: its segments' vectors.

    And, if asked for, the scores of the systems that its report compares with.
    """
    read = sorted(other for other in others if (other / "corpus").exists())
    if run.exists() or not read:
        return
    ignore = shutil.ignore_patterns("*.partial", "vectors-*.*-*")
    corpus = read[0] / "corpus"
    shutil.copytree(corpus, run / "corpus", copy_function=os.link, ignore=ignore)
    scores = read[0] / "baselines.json"
    if baselines and scores.exists():
        shutil.copy(scores, run)


def source(config: ConfigDict) -> Callable[[], Iterator[Document]]:
    """The documents of a config, with the splits of its hold-out."""
    nodes = named.plain(config)
    read, cut = (named.build(nodes[name]) for name in ("source", "holdout"))
    return functools.partial(cut, read) if cut else read


def tasks(config: ConfigDict) -> dict[str, Task]:
    """The tasks of a config, by name."""
    nodes = named.plain(config)["tasks"]
    return {name: named.build(node) for name, node in nodes.items()}
