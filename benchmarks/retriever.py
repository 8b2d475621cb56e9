"""Does training a retriever pay? `configs/retriever.py:frozen` on small collections.

    python -m benchmarks.retriever --data FOLDER --workdir runs/retriever --seeds 0 1 2

Collections: title and sentence (Wikipedia articles, made by WIKIR's rules: 100 queries
choose, 200 test, the others train; relevant is the query's own article) and nfcorpus
(half of its development queries train, the other half chooses). MiniLM is frozen and
reads each collection once, Wikipedia in passages of 100 words. Rows: BM25, MiniLM's
mean, an untrained graph in the paper's form, and the trained retriever: the recipe with
negatives of BM25, at random, and of its own, and with the full and the section graph
beside its mean, with and without contrastive pre-training. Runs lie under --workdir;
the same command resumes them.

Two weights of the fusion are shown. A run's own weight was chosen on the queries that
also chose its step, so it favours the vectors too much. The other is cross-validated
over five folds of the test queries; the gains, by seed, are those of the second.
"""

import argparse
import functools
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import runs, tiny
from docjax import cli
from docjax import config as configs
from docjax.retrieval import collection as judged
from docjax.retrieval import fusion, measures, paired, trec
from docjax.types import Qrels

ARTICLES = "wiki_vital797.jsonl.xz"
COLLECTIONS = ("title", "sentence", "nfcorpus")
METRIC = "ndcg@10"
DENSE, FUSED = (f"eval/retrieval/{system}/{METRIC}" for system in ("dense", "fused"))
FIRST = "trained, negatives of BM25"
BRANCH = "encoder.document.branch"
GRAPH = configs.load("graph_roberta").encoder.document.to_dict()


def collection(name: str, flags: argparse.Namespace) -> Path:
    """The folder of a collection; made if it is missing."""
    folder = flags.workdir / "collections" / name
    if (folder / "qrels/train.tsv").exists():
        return folder
    if name != "nfcorpus":
        shutil.rmtree(folder, ignore_errors=True)
        asked = ["--query", name, "--validation", "100", "--test", "200"]
        cli.main(
            ["queries", str(flags.data / ARTICLES), "--output", str(folder), *asked]
        )
        return folder
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    given = flags.data / "nfcorpus_proc"
    for file in ("corpus.jsonl.xz", "queries.jsonl", "qrels/test.tsv"):
        shutil.copy(given / file, folder / file)
    header, *lines = (given / "qrels/dev.tsv").read_text("utf-8").splitlines()
    queries = sorted({line.split("\t")[0] for line in lines})
    order = np.random.default_rng(0).permutation(queries).tolist()
    halves = {"dev": order[: len(order) // 2], "train": order[len(order) // 2 :]}
    for part, chosen in halves.items():
        kept = [line for line in lines if line.split("\t")[0] in set(chosen)]
        (folder / f"qrels/{part}.tsv").write_text("\n".join([header, *kept]) + "\n")
    return folder


def variants(name: str) -> dict[str, dict[str, Any]]:
    """What differs from the recipe, by the name of the row."""
    rows: dict[str, dict[str, Any]] = {
        FIRST: {},
        "trained, uniform negatives": {"examples.negatives": "uniform"},
        "trained, own negatives": {"examples.negatives": "own"},
    }
    if name == "nfcorpus":  # abstracts of one or two passages, without sections
        return rows
    for graph in ("full", "section"):
        fields = {"graph": {"fn": f"docjax.data.graphs.{graph}"}, BRANCH: GRAPH}
        rows[f"{graph} graph"] = fields
        rows[f"{graph} graph, pre-trained"] = fields | {"init": "pre-trained"}
    return rows


UNTRAINED = "untrained graph"
ROWS = [UNTRAINED, *variants("title")]


class Runs:
    """The runs on one collection with one seed."""

    def __init__(self, name: str, seed: int, flags: argparse.Namespace):
        self.name, self.seed, self.flags = name, seed, flags
        self.data = collection(name, flags)
        self.folder = flags.workdir / f"{name}-{seed}"

    def run(self, row: str, fields: dict[str, Any], config: str = "retriever") -> Path:
        """The run of a row; trained if it has not ended yet."""
        run = self.folder / row.replace(", ", "-").replace(" ", "_")
        if runs.is_done(run):
            return run
        found = configs.load(config, variant="frozen")
        found.init, found.seed = self.flags.init, self.seed
        found.source.path = str(self._corpus())
        found.tasks.retrieval.path = str(self.data)
        found.source.max_bad_fraction = found.tasks.retrieval.max_bad_fraction = 0.01
        if config == "retriever":
            found.examples.path = str(self.data)
        if self.name != "nfcorpus":
            found.units = {"fn": "docjax.data.units.Passages", "words": 100}
        for field, value in (dict(self.flags.set) | fields).items():
            section, _, last = field.rpartition(".")
            functools.reduce(getattr, filter(None, section.split(".")), found)[last] = (
                value
            )
        of_init = config == "retriever" and found.init == self.flags.init
        runs.begin(run, self.flags.workdir.glob(f"{self.name}-*/*"), baselines=of_init)
        runs.trained(found, run)
        return run

    def row(self, row: str, fields: dict[str, Any]) -> Path:
        """The run of a row of `variants`, after the runs that it stands on."""
        fields = dict(fields)
        if fields.get("init") == "pre-trained":
            graph = {name: fields[name] for name in ("graph", BRANCH)}
            name = row.replace("pre-trained", "pre-training")
            fields["init"] = str(self.run(name, graph, "retriever_pretraining"))
        if fields.get("examples.negatives") == "own":
            first = self.run(FIRST, {})
            mined = self.folder / "own.jsonl"
            if not mined.exists():
                asked = [str(first), "--data", str(self.data), "--output", str(mined)]
                cli.main(["mine", *asked, "--max-bad-fraction", "0.01"])
            fields |= {"examples.negatives": str(mined), "init": str(first)}
        return self.run(row, fields)

    def untrained_graph(self) -> Path:
        """A graph of random weights in the paper's form, kept for its only step."""
        fields = {
            "encoder.document": GRAPH,
            "encoder.segment.words": 0,
            "graph": {"fn": "docjax.data.graphs.full"},
            "steps": 1,
            "optimizer.learning_rate": 1e-12,
        }
        return self.run(UNTRAINED, fields)

    def _corpus(self) -> Path:
        return next(self.data.glob("corpus.jsonl*"))


def scores(run: Path) -> dict[str, float]:
    """The last metrics of a run, on the test queries."""
    return runs.metrics(run)[-1]


def plain(run: Path) -> float:
    """The score of MiniLM's mean over all words, of passages where the run has them."""
    rows = json.loads((run / "baselines.json").read_text())
    *_, last = (rows[name] for name in rows if name.startswith("init, all words"))
    return last[DENSE]


def cross_validated_fusion(run: Path, test: Qrels) -> tuple[float, list[str]]:
    """The fusion by cross-validation: its score, and gains over BM25 and the vectors."""
    score = lambda ranked: measures.of_queries(test, ranked, METRIC)
    dense, bm25 = (trec.read(run / f"retrieval/{x}.trec") for x in ("dense", "bm25"))
    by_weight = fusion.table(dense, bm25, list(test), score)
    weights = fusion.cross_validated(by_weight)
    at = dict(zip(fusion.WEIGHTS, by_weight, strict=True))
    fused = {query: at[weight][query] for query, weight in weights.items()}
    gains = [paired.gain(fused, score(base)) for base in (bm25, dense)]
    shown = "{gain:+.3f} ({gain_low:+.3f} to {gain_high:+.3f})"
    return float(np.mean(list(fused.values()))), [shown.format(**x) for x in gains]


def table(name: str, flags: argparse.Namespace) -> None:
    test = judged.read(collection(name, flags)).test
    print(
        f"\n| {name} | dense, by seed | fused, own weight | fused, cross-validated | "
        "over BM25 | over dense |\n|---|---|---|---|---|---|",
        flush=True,
    )
    seeds = [Runs(name, seed, flags) for seed in flags.seeds]
    first = [each.run(FIRST, {}) for each in seeds]
    show("BM25", [scores(run)[DENSE.replace("dense", "bm25")] for run in first])
    show("MiniLM's mean", [plain(run) for run in first])
    if UNTRAINED in flags.rows:
        show(UNTRAINED, [scores(each.untrained_graph())[DENSE] for each in seeds])
    for row, fields in variants(name).items():
        if row not in flags.rows:
            continue
        done = [each.row(row, fields) for each in seeds]
        fused, gains = zip(
            *(cross_validated_fusion(run, test) for run in done), strict=True
        )
        columns = [", ".join(of) for of in zip(*gains, strict=True)]
        own = [scores(run)[FUSED] for run in done]
        cells = [numbers(own), numbers(fused), *columns]
        show(row, [scores(run)[DENSE] for run in done], cells)


def numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def show(row: str, values: Sequence[float], cells: Sequence[str] = ("",) * 4) -> None:
    print(f"| {row} | {numbers(values)} | {' | '.join(cells)} |", flush=True)


def parse(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument(
        "--collections", nargs="+", choices=COLLECTIONS, default=COLLECTIONS
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS)
    runs.add_init(parser)
    runs.add_set(parser)
    sizes = "--collections", "nfcorpus", "--rows", FIRST, "--seeds", 0
    return tiny.parse(parser, given, *tiny.TRAINING, *sizes, "--set", "steps=2")


def main(given: Sequence[str] | None = None) -> None:
    flags = parse(given)
    for each in flags.collections:
        table(each, flags)


if __name__ == "__main__":
    main()
