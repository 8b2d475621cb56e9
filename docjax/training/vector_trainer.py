"""Trains encoders with a loss of the views' vectors, of masked tokens, or of both.

`gradient_cache.py` computes the exact gradient of the whole batch.
"""

import dataclasses
import logging
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Int

from docjax.data.examples import Examples
from docjax.data.masking import Masking
from docjax.data.microbatches import FEW_SHAPES, SHAPES, device_graphs
from docjax.data.packing import Layout, padding
from docjax.data.segment_batches import Reader, TrainingBatches, check_fills, log_cut
from docjax.encoders import document, freezing
from docjax.errors import UserError
from docjax.objectives import facts
from docjax.run.fields import RunConfig
from docjax.run.prepared import Prepared
from docjax.storage.processes import least
from docjax.training import memory, programs, sharding
from docjax.training.gradient_cache import GradientCache
from docjax.training.momentum import Following
from docjax.training.step import initial_state, make_step
from docjax.types import (
    DOCUMENT,
    QUERY,
    Batch,
    ObjectiveOfTokens,
    ObjectiveWithMemory,
    State,
)

logger = logging.getLogger(__name__)

LONG = 10_000  # steps in which padding costs more than compiling further widths
LARGEST = 8  # documents whose views are drawn to find the longest view
DRAWS = 4  # epochs in which they are drawn


class VectorTrainer:
    """The training of any encoder by an objective over document vectors.

    teacher: a vector of each document of the corpus, for `Targets.teacher`.
    """

    def __init__(
        self,
        prepared: Prepared,
        objective: Any,
        mesh: jax.sharding.Mesh,
        teacher: np.ndarray | None = None,
    ):
        config = prepared.config
        check_batch(prepared, mesh)
        masked = objective if isinstance(objective, ObjectiveOfTokens) else None
        self.prepared, self.mesh = prepared, mesh
        batches = training_batches(prepared, masked)
        self.batches = dataclasses.replace(batches, teacher=teacher)
        self.cache = GradientCache(
            encoder=prepared.encoder,
            objective=masked.contrastive if masked else objective,
            mesh=mesh,
            kinds=self.batches.reader.kinds(self.batches.examples.kinds),
            token_weight=masked.weight if masked else 0.0,
        )
        examples, views = self.batches.examples, len(self.cache.kinds)
        facts.check_examples(objective, examples, views)
        if self.cache.momentum is not None:
            _check_momentum(prepared)
            layout = self.batches.layout._replace(towers=self.cache.towers)
            self.batches = dataclasses.replace(self.batches, layout=layout)
        self.steps = _steps(config, len(examples))
        self.optimizer = _optimizer(config, self.steps)
        self.dataset = self.batches.dataset(self.steps)
        self.keep(0)
        self._fit_memory()

    @property
    def epoch_steps(self) -> int:
        return self.batches.epoch_steps

    def keep(self, microbatches: int) -> None:
        """Sets `GradientCache.keep` for the steps from now on."""
        self.cache = dataclasses.replace(self.cache, keep=microbatches)
        self.step = make_step(self.cache, self.optimizer)

    def begin(self, params: Any) -> State:
        memory: Any = ()
        frozen = self.prepared.encoder.frozen
        params = self.prepared.encoder.document.begin(params)
        if isinstance(self.cache.objective, ObjectiveWithMemory):
            batch, _ = self.dataset[0]
            _, examples, width = programs.output_shape(self.cache, params, batch).shape
            memory = self.cache.objective.begin(examples, width)
        if self.cache.momentum is not None:
            memory = Following(params, memory)
        return initial_state(params, self.optimizer, frozen, memory)

    def put(self, batch: Batch) -> Batch:
        return sharding.put_batch(batch, self.mesh)

    def measure(self, batch: Batch) -> dict[str, int]:
        computed, real = padding(batch)
        tokens = int(batch.lengths.sum())
        counts = {"computed": computed, "real": real, "tokens": tokens}
        return counts | ({"cut": batch.cut} if batch.cut else {})

    def documents(self, step: int) -> list[str]:
        _, rows = self.dataset[step - 1]
        corpora = self.batches.reader.corpora
        slots = zip(self.batches.examples.kinds, rows.T, strict=True)
        return [corpora[kind].ids[row] for kind, column in slots for row in column]

    def _fit_memory(self) -> None:
        """Keeps activations where memory allows. Raises UserError if a batch does not
        fit or `frozen` is invalid."""
        encoder = self.prepared.encoder
        shapes = document.param_shapes(encoder)
        freezing.check(shapes, encoder.frozen)
        trained, _ = freezing.divided(shapes, encoder.frozen)
        if "segment" in trained:
            layout, masking = self.batches.layout, self.batches.masking
            state, width = jax.eval_shape(self.begin, shapes), layout.widths[-1]
            answers = masking.most(width) if masking else None
            size = layout.rows, width, self.batches.segments()
            self.keep(least(memory.most_kept(self.cache, state, *size)))
            memory.check(self.cache, state, *size, answers)


def _check_momentum(prepared: Prepared) -> None:
    """Raises UserError for an encoder that no second encoder can follow."""
    encoder = prepared.encoder
    if encoder.segment.has_towers or encoder.document.joins_views:
        raise UserError(
            "objective.momentum makes a second encoder that reads view 1 by itself: "
            "encoder.segment may have no towers, and encoder.document may not read "
            "several views together; set objective.momentum to None"
        )


def check_batch(prepared: Prepared, mesh: jax.sharding.Mesh) -> None:
    """Raises UserError for a batch that the devices cannot share or no step can fill."""
    config = prepared.config
    sharding.check_divides(mesh, config.batch, config.microbatch)
    examples = prepared.examples
    if prepared.encoder.classifies:
        examples = examples.where(examples.labels >= 0)
    enough = _has_enough_units(prepared, _reader(prepared), examples)
    check_fills(config.batch, int(enough.sum()))


def check_vectors(prepared: Prepared, mesh: jax.sharding.Mesh, width: int) -> None:
    """Raises UserError if the vectors of a batch's segments, and the graphs over them,
    cannot fit on a device.

    The views of the LARGEST documents, drawn in DRAWS epochs, stand for all. The
    vectors, of `width` numbers, need not be there yet.
    """
    examples, reader = prepared.examples, _reader(prepared)
    counts = prepared.training_corpus.counts[_documents(examples)]
    counts = np.minimum(counts, reader.units or counts)
    counts = np.where(counts.min(1) >= reader.views.least_units, counts.max(1), 0)
    largest = counts.argsort(kind="stable")[-LARGEST:]
    drawn = [
        reader.read(examples.kinds, examples.rows[number], epoch)[0]
        for number in largest[counts[largest] > 0]
        for epoch in range(DRAWS)
    ]
    if drawn:
        longest = max((view for views in drawn for view in views), key=len)
        read = prepared.graph, len(longest), prepared.encoder.sparse
        graph = sum(x.nbytes for x in jax.tree.leaves(device_graphs([longest], *read)))
        size = prepared.config.batch, len(drawn[0]), len(longest), width
        memory.check_vectors(mesh, *size, graph)


def training_batches(
    prepared: Prepared, masked: ObjectiveOfTokens | None
) -> TrainingBatches:
    """The batches of the training examples; warns of examples that are left out."""
    config, encoder = prepared.config, prepared.encoder
    limits, reader = config.limits, _reader(prepared)
    examples = _usable(prepared, reader)
    layout = Layout(
        rows=config.microbatch,
        widths=reader.widths(examples, _shapes(config, len(examples))),
        limit=limits.segment_tokens,
        graph=prepared.graph,
        sparse=encoder.sparse,
        towers=encoder.towers(reader.kinds(examples.kinds)),
    )
    masking = masked and _masking(prepared, masked.rate, examples.kinds)
    return TrainingBatches(reader, examples, config.batch, layout, masking)


def _shapes(config: RunConfig, examples: int) -> int:
    """The most widths of micro-batches: few for a short run on a GPU or a TPU.

    They take long to compile the programs of a width; FEW_SHAPES cost 3 % more padding.
    """
    is_long = _steps(config, examples) >= LONG
    on_cpu = jax.default_backend() == "cpu"
    return SHAPES if on_cpu or is_long else FEW_SHAPES


def _steps(config: RunConfig, examples: int) -> int:
    return config.steps or config.epochs * (examples // config.batch)


def _masking(prepared: Prepared, rate: float, kinds: Iterable[str]) -> Masking:
    """The masking that spares the longest prompt of the examples."""
    frames = (prepared.frames[kind] for kind in kinds)
    frame = max(frames, key=lambda frame: len(frame.prefix))
    return Masking.of(prepared.tokenizer, frame, rate)


def _reader(prepared: Prepared) -> Reader:
    """What reads the views of an example."""
    limits = prepared.config.limits
    corpora = {DOCUMENT: prepared.training_corpus, QUERY: prepared.queries}
    return Reader(
        corpora={kind: corpus for kind, corpus in corpora.items() if corpus},
        frames=prepared.frames,
        views=prepared.views,
        cutter=prepared.cutter,
        units=limits.training_units,
        most=limits.training_segments,
        tokens=limits.training_tokens,
        seed=prepared.config.seed,
    )


def _usable(prepared: Prepared, reader: Reader) -> Examples:
    """The examples with enough units and, for a classifier, with a label."""
    examples, least = prepared.examples, reader.views.least_units
    if prepared.encoder.classifies:
        examples = _kept(examples, examples.labels >= 0, "have no label")
    counts = prepared.training_corpus.counts
    log_cut(counts[np.unique(_documents(examples))], reader.units)
    enough = _has_enough_units(prepared, reader, examples)
    return _kept(examples, enough, f"have fewer than {least} units")


def _has_enough_units(
    prepared: Prepared, reader: Reader, examples: Examples
) -> Bool[np.ndarray, " b"]:
    """Whether the documents of each example have the units that the views need. Raises
    UserError if no example has them."""
    counts, least = prepared.training_corpus.counts, reader.views.least_units
    units = np.minimum(counts, reader.units or counts)
    enough = (units[_documents(examples)] >= least).all(axis=1)
    if not enough.any():
        raise UserError(
            f"no training example has documents of {least} units or more: check the "
            "documents, and that --config.splits.train names their split"
        )
    return enough


def _documents(examples: Examples) -> Int[np.ndarray, "b _"]:
    """The rows of the documents of each example, without its queries."""
    slots = [slot for slot, kind in enumerate(examples.kinds) if kind == DOCUMENT]
    return examples.rows[:, slots]


def _kept(examples: Examples, kept: np.ndarray, why: str) -> Examples:
    if not kept.all():
        unused, total = int((~kept).sum()), len(kept)
        logger.warning("%d of %d training examples %s: not used", unused, total, why)
    return examples.where(kept)


def _optimizer(config: RunConfig, steps: int) -> Any:
    make = config.optimizer.built
    if not callable(make):
        raise UserError(
            f"optimizer {config.optimizer.fn} updates tables of words, not encoders: "
            "set --config.optimizer.fn to docjax.training.optimizer.adamw"
        )
    return make(steps)
