"""Runs the tasks that a config names on a model's vectors."""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import logging

from docjax import checkpoint
from docjax import config as config_lib
from docjax.data import batches
from docjax.encoders.document import fresh_params
from docjax.inference import Inference
from docjax.prepare import Prepared, prepare
from docjax.training import loop, metrics, sharding
from docjax.types import Embeddings


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation:
    """The tasks of a run, on its labelled documents."""

    prepared: Prepared
    mesh: jax.sharding.Mesh

    def __call__(self, params: Any, part: str = "test") -> dict[str, float]:
        """Metrics named `eval/<task>/<metric>`; of validation, `validation/...`."""
        tasks = self.prepared.config["tasks"]
        if not tasks:
            return {}
        train, test = self._embeddings(params, "train"), self._embeddings(params, part)
        prefix = "eval" if part == "test" else part
        metrics = {}
        for name, task in tasks.items():
            found = config_lib.build(task)(train, test)
            metrics |= {f"{prefix}/{name}/{key}": value for key, value in found.items()}
        return metrics

    def vectors(self, params: Any, rows: np.ndarray) -> np.ndarray:
        """Vectors of the corpus's documents at `rows`."""
        most = self.prepared.config["limits"]["inference_segments"]
        documents = (batches.cap(self.prepared.corpus[int(row)], most) for row in rows)
        return np.stack(list(self._inference.encode(params, documents)))

    @functools.cached_property
    def _inference(self) -> Inference:
        prepared = self.prepared
        limit = prepared.config["limits"]["segment_tokens"]
        return Inference(prepared.encoder, prepared.graph, self.mesh, limit)

    def _embeddings(self, params: Any, part: str) -> Embeddings:
        corpus, rows = self.prepared.corpus, self.prepared.rows(part)
        labelled = np.array([r for r in rows if corpus.labels[r] is not None], int)
        if len(labelled) < len(rows):
            left = len(rows) - len(labelled)
            logging.info("%d %s documents have no label: left out", left, part)
        if not len(labelled):
            return Embeddings(np.zeros((0, 0), np.float32), [])
        vectors = self.vectors(params, labelled)
        return Embeddings(
            vectors,
            [corpus.labels[row] for row in labelled],
            self._predictions(params, vectors),
        )

    def _predictions(self, params: Any, vectors: np.ndarray) -> list[str] | None:
        if self.prepared.encoder.head is None:
            return None
        numbers = self._inference.predictions(params, vectors)
        return [self.prepared.config["labels"][i] for i in numbers]


def run(config: Any, directory: Path, mode: str) -> dict[str, float]:
    """Trains and evaluates, or evaluates a trained run; gives the final metrics."""
    prepared = prepare(config, directory)
    mesh = sharding.mesh()
    evaluation = Evaluation(prepared, mesh)
    if mode == "train":
        loop.train(prepared, mesh, evaluation)
    else:
        shapes = jax.eval_shape(lambda: fresh_params(prepared.encoder, 0))
        params = checkpoint.restore_params(directory, shapes)
        metrics.append(directory, evaluation(params, "test"))
    return metrics.read(directory)[-1]
