"""Runs the tasks that a config names on a model's vectors."""

import dataclasses
import functools
import inspect
from typing import Any

import jax
import numpy as np
from absl import logging

from docjax import config as config_lib
from docjax.data.segments import segments
from docjax.model.inference import Inference
from docjax.run.prepare import Prepared
from docjax.types import Embeddings


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation:
    """The tasks of a run, on its labelled documents."""

    prepared: Prepared
    mesh: jax.sharding.Mesh

    def __call__(self, params: Any, part: str = "test") -> dict[str, float]:
        """Metrics named `eval/<task>/<metric>`; of validation, `validation/...`.

        None without tasks, or without labelled documents.
        """
        tasks = self._tasks()
        if not tasks:
            return {}
        parts = {"test": part}
        if any(
            "train" in inspect.signature(task).parameters for task in tasks.values()
        ):
            parts["train"] = "train"
        found = {name: self._embeddings(params, one) for name, one in parts.items()}
        empty = [parts[name] for name, one in found.items() if not one.labels]
        if empty:
            which = " and ".join(empty)
            logging.warning("no labelled %s documents: the tasks are left out", which)
            return {}
        return self.scores(found, "eval" if part == "test" else part)

    def scores(self, parts: dict[str, Embeddings], prefix: str) -> dict[str, float]:
        """The tasks' metrics on the vectors "test" and, where it is read, "train"."""
        found = {}
        for name, task in self._tasks().items():
            asked = inspect.signature(task).parameters
            given = {part: parts[part] for part in parts if part in asked}
            for key, value in task(**given).items():
                found[f"{prefix}/{name}/{key}"] = value
        return found

    def _tasks(self) -> dict[str, Any]:
        return config_lib.build(self.prepared.config["tasks"] or {})

    def vectors(self, params: Any, rows: np.ndarray) -> np.ndarray:
        """Vectors of the corpus's documents at `rows`."""
        prepared, limits = self.prepared, self.prepared.config["limits"]
        frame = prepared.tokenizer.frame(limits["segment_tokens"])
        documents = (
            segments(prepared.corpus[int(row)], prepared.cutter, frame).first(
                limits["inference_segments"]
            )
            for row in rows
        )
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
        if not self.prepared.encoder.classifies:
            return None
        numbers = self._inference.predictions(params, vectors)
        return [self.prepared.config["labels"][i] for i in numbers]
