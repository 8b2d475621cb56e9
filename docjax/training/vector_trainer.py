"""Trains encoders by what an objective says of the documents' vectors.

The gradient is exact for the whole batch: `gradient_cache.py`.
"""

from collections.abc import Callable
from typing import Any

import grain
import jax
import numpy as np
from absl import logging

from docjax import config as config_lib
from docjax.data import segment_batches as batches
from docjax.encoders.document import fresh_params
from docjax.errors import UserError
from docjax.run.prepare import Prepared
from docjax.training import memory, sharding
from docjax.training.gradient_cache import GradientCache
from docjax.training.step import State, initial_state, make_step
from docjax.types import Batch


class VectorTrainer:
    """The training of any encoder by an objective over document vectors."""

    def __init__(
        self, prepared: Prepared, objective: Callable, mesh: jax.sharding.Mesh
    ):
        config = prepared.config
        sharding.check_divides(mesh, config["batch"], config["microbatch"])
        self.prepared, self.mesh = prepared, mesh
        self.batches = training_batches(prepared)
        self.cache = GradientCache(
            prepared.encoder, objective, mesh, prepared.views.queries
        )

    @property
    def epoch_steps(self) -> int:
        return self.batches.epoch_steps

    def dataset(self, steps: int) -> grain.MapDataset:
        """`(Batch, documents)` for each step; the schedule is that of `steps`."""
        make = config_lib.build(self.prepared.config["optimizer"])
        if not callable(make):
            raise UserError(
                f"optimizer {self.prepared.config['optimizer']['fn']} is one for "
                "tables of words; take docjax.training.optimizer.adamw"
            )
        self.optimizer = make(steps)
        self.step = make_step(self.cache, self.optimizer)
        if not self.prepared.encoder.frozen:
            self._check_memory()
        return self.batches.dataset(steps)

    def _check_memory(self) -> None:
        """Raises UserError if a step with the segments of an average batch is too large."""
        batches, encoder = self.batches, self.prepared.encoder
        counts = batches.corpus.counts[batches.documents]
        read = np.minimum(counts, batches.limit or counts).mean()
        segments = int(batches.batch * batches.views.count * read)
        state = jax.eval_shape(lambda: self.begin(fresh_params(encoder, 0)))
        width = batches.widths()[-1]
        memory.check(self.cache, state, batches.microbatch, width, segments)

    def begin(self, params: Any) -> State:
        """The state before the first step."""
        return initial_state(params, self.optimizer, self.prepared.encoder.frozen)

    def put(self, batch: Batch) -> Batch:
        """The batch on the devices."""
        return sharding.put_batch(batch, self.mesh)

    def measure(self, batch: Batch) -> tuple[int, float]:
        """Tokens of a batch, and the share of padding."""
        return int(batch.lengths.sum()), batches.padding(batch)


def training_batches(prepared: Prepared) -> batches.TrainingBatches:
    """The batches of the training documents; says which cannot be used."""
    config, views = prepared.config, prepared.views
    rows = prepared.trained_on
    if prepared.encoder.classifies:
        labelled = rows[prepared.labels[rows] >= 0]
        if len(labelled) < len(rows):
            left, rows = len(rows) - len(labelled), labelled
            logging.warning("%d training documents have no label: not used", left)
    limit = config["limits"]["training_segments"]
    counts = prepared.corpus.counts[rows]
    read = np.minimum(counts, limit or counts)
    usable = rows[read >= views.least_segments]
    if len(usable) < len(rows):
        logging.warning(
            "%d of %d training documents have fewer than %d segments: not trained on",
            len(rows) - len(usable),
            len(rows),
            views.least_segments,
        )
    batches.log_cut(counts, limit)
    return batches.TrainingBatches(
        corpus=prepared.corpus,
        documents=usable,
        labels=prepared.labels,
        views=views,
        graph=prepared.graph,
        batch=config["batch"],
        microbatch=config["microbatch"],
        limit=limit,
        seed=config["seed"],
        sparse=prepared.encoder.sparse,
    )
