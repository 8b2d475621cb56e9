"""Trains word tables by predicting words (`objectives/negative_sampling.py`).

A step reads the documents of a batch in blocks. Each block updates the table rows that
it read. With paraphrases, one update by the batch's contrastive loss follows. Several
replicas of the tables each read a part of the documents at the same time; then their
changes to the tables are added up.
"""

import functools
import logging
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, Int

from docjax.data.segment_batches import log_cut
from docjax.data.word_batches import WordBatch, WordBatches
from docjax.data.word_blocks import PAD, Blocks, Groups, Layout
from docjax.encoders.document import DocumentEncoder
from docjax.encoders.pooling import Mean
from docjax.errors import UserError
from docjax.kernels import row_sums
from docjax.objectives.negative_sampling import Rows
from docjax.run.fields import Limits, RunConfig
from docjax.run.prepared import Prepared
from docjax.training import sharding
from docjax.training.rows import Gradient, group_gradient, group_sums
from docjax.types import ObjectiveOfWords, RowOptimizer, State, Targets, Views

logger = logging.getLogger(__name__)

POWER = 0.75  # noise words are drawn in proportion to count**POWER


class Statistics(NamedTuple):
    """The states of the optimizers."""

    words: Any
    targets: Any
    head: Any


class WordTrainer:
    """The training of a WordAverage encoder with NegativeSampling."""

    def __init__(
        self, prepared: Prepared, objective: ObjectiveOfWords, mesh: jax.sharding.Mesh
    ):
        _check(prepared.encoder, prepared.config.limits)
        sharding.check_replicas(mesh, objective.replicas)
        self.prepared, self.objective, self.mesh = prepared, objective, mesh
        self.optimizer = _optimizer(prepared.config, objective.replicas)
        self.head_optimizer = optax.adam(objective.head_learning_rate)
        self.contrastive = objective.contrastive if objective.weight > 0 else None
        self.batches = _batches(prepared, objective, self.contrastive is not None)
        # The learning rate falls until the last step.
        epochs = prepared.config.epochs
        self.steps = prepared.config.steps or epochs * self.epoch_steps
        self.dataset = self.batches.dataset(self.steps)
        options, platform = {}, mesh.devices.flat[0].platform
        if mesh.size > 1 and platform == "cpu":
            # Parallel operations of one device would take the cores of other devices
            # (benchmarks/words.py).
            options["xla_cpu_scheduler_type"] = "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
        self.step = jax.jit(self._step, donate_argnums=0, compiler_options=options)

    @property
    def epoch_steps(self) -> int:
        return self.batches.epoch_steps

    def documents(self, step: int) -> list[str]:
        _, rows = self.dataset[step - 1]
        return [self.prepared.corpus.ids[row] for row in rows]

    def put(self, batch: WordBatch) -> WordBatch:
        """The batch on the devices: several replicas split the blocks only."""
        if self.mesh.size == 1:  # faster
            return jax.device_put(batch)
        place = sharding.replicate if self.objective.replicas == 1 else sharding.cut
        views = sharding.replicate(batch.views, self.mesh)
        return WordBatch(place(batch.blocks, self.mesh), views)

    def begin(self, params: Any) -> State:
        tables = params["segment"]
        statistics = Statistics(
            self.optimizer.init(tables["words"]),
            self.optimizer.init(tables["targets"]),
            self.head_optimizer.init(params.get("head", {})),
        )
        return State(jnp.zeros([], jnp.int32), params, statistics)

    def measure(self, batch: WordBatch) -> dict[str, int]:
        words, blocks = int(batch.blocks.total.sum()), int(batch.blocks.used.sum())
        computed = blocks * batch.blocks.words[0, 0].size
        return {"computed": computed, "real": words, "tokens": words}

    def _step(
        self, state: State, batch: WordBatch, key: jax.Array
    ) -> tuple[State, dict[str, Float[Array, ""]]]:
        """One update per block of the batch, then one by the contrastive loss."""
        decay = jnp.maximum(1 - state.step / self.steps, 1e-4)
        if self.objective.replicas == 1:
            blocks = jax.tree.map(lambda array: array[0], batch.blocks)
            state, (loss, square, words) = self._read(state, blocks, decay)
        else:
            state, (loss, square, words) = self._replicas(state, batch.blocks, decay)
        # The norm covers all parts of the rows' gradients, before the parts are summed.
        metrics = {"loss": loss / words, "grad_norm": jnp.sqrt(square)}
        if self.contrastive is not None:
            key = jax.random.fold_in(key, state.step)  # the host made the blocks' draws
            state, loss, aux = self._contrast(state, batch.views, words, decay, key)
            metrics |= aux | {"words_loss": metrics["loss"], "contrastive_loss": loss}
            metrics["loss"] += self.objective.weight * loss
        return state._replace(step=state.step + 1), metrics

    def _replicas(self, state: State, blocks: Blocks, decay):
        """The blocks of all replicas: same tables at first, then the sum of changes."""

        def local(state, blocks, decay):
            before = _changed(state)

            def replica(total, blocks):
                after, sums = self._read(state, blocks, decay)
                change = jax.tree.map(jnp.subtract, _changed(after), before)
                return jax.tree.map(jnp.add, total, (change, sums)), None

            zeros = jax.tree.map(jnp.zeros_like, before), jnp.zeros(3)
            # The replicas of one device run one after the other.
            total, _ = jax.lax.scan(replica, zeros, blocks)
            change, sums = jax.lax.psum(total, "data")
            return jax.tree.map(jnp.add, before, change), sums

        whole, parts = P(), P("data")
        specs = dict(in_specs=(whole, parts, whole), out_specs=whole, check_vma=False)
        local = jax.shard_map(local, mesh=self.mesh, **specs)
        (tables, words, targets), sums = local(state, blocks, decay)
        params = state.params | {"segment": tables}
        statistics = state.optimizer._replace(words=words, targets=targets)
        return state._replace(params=params, optimizer=statistics), sums

    def _read(self, state: State, blocks: Blocks, decay):
        """The state after all blocks, and their loss, squared gradients and words."""

        def block(i, carry):
            state, sums = carry
            state, of_block = self._block(state, blocks, i, decay)
            return state, sums + of_block

        initial = state, jnp.zeros(2)
        state, sums = jax.lax.fori_loop(0, blocks.used, block, initial)
        return state, jnp.append(sums, blocks.total)

    def _block(self, state: State, blocks: Blocks, i, decay):
        """The state after block `i`, and the block's loss and squared gradient."""
        words, drawn, noise = blocks.words[i], blocks.drawn[i], blocks.noise[i]
        u, v = state.params["segment"]["words"], state.params["segment"]["targets"]
        rows = Rows(u[words], u[drawn], v[words], v[noise])
        rest = words, blocks.estimates[i], noise, blocks.windows[i]
        loss, gradient = self.objective.gradient(rows, *rest)
        of_words = Gradient(words, gradient.words), Gradient(drawn, gradient.drawn)
        of_targets = Gradient(words, gradient.targets), Gradient(noise, gradient.noise)
        # Adagrad needs these sums too: the compiler computes them once.
        square = sum(row_sums(array**2).sum() for array in gradient)
        state = self._update(state, of_words, of_targets, decay)
        return state, jnp.stack([loss, square])

    def _update(self, state: State, of_words, of_targets, decay) -> State:
        tables, statistics = dict(state.params["segment"]), state.optimizer
        changed = {}
        for name, gradients in (("words", of_words), ("targets", of_targets)):
            changed[name] = getattr(statistics, name)
            if gradients:
                tables[name], changed[name] = self.optimizer.update(
                    tables[name], changed[name], gradients, decay
                )
        tables["words"] = tables["words"].at[PAD].set(0.0)
        params = state.params | {"segment": tables}
        return state._replace(params=params, optimizer=statistics._replace(**changed))

    def _contrast(self, state: State, views: Groups, words, decay, key):
        """One update by the contrastive loss, scaled to the sum of the words' losses;
        `key` is that of a predictor's dropout."""
        table, head = state.params["segment"]["words"], state.params.get("head", {})
        lengths = jnp.maximum(views.lengths, 1)[..., None]
        vectors = group_sums(table, views) / lengths

        def loss_fn(vectors, head):
            params = {"params": {"head": head} if head else {}}
            apply = functools.partial(self.prepared.encoder.apply, params)
            unlabelled = Targets(jnp.full(vectors.shape[1], -1))
            return self.contrastive(apply(vectors, key, method="outputs"), unlabelled)

        (loss, metrics), (of_vectors, of_head) = jax.value_and_grad(
            loss_fn, (0, 1), has_aux=True
        )(vectors, head)
        of_sums = of_vectors * self.objective.weight * words / lengths
        of_words = group_gradient(of_sums, views, len(table))
        state = self._update(state, [of_words], (), decay)
        if head:
            statistics = state.optimizer
            updates, moments = self.head_optimizer.update(of_head, statistics.head)
            params = state.params | {"head": optax.apply_updates(head, updates)}
            statistics = statistics._replace(head=moments)
            state = state._replace(params=params, optimizer=statistics)
        return state, loss, metrics


def _changed(state: State) -> tuple[Any, ...]:
    """The parts of the state that blocks change: the tables and their statistics."""
    return state.params["segment"], state.optimizer.words, state.optimizer.targets


def _batches(
    prepared: Prepared, objective: ObjectiveOfWords, paraphrases: bool
) -> WordBatches:
    """The batches of the training documents that have words."""
    corpus, limit = prepared.corpus, prepared.config.limits.training_units
    usable, lengths = _usable(prepared)
    batch = min(prepared.config.batch, len(usable))
    counts = corpus.word_counts(prepared.tokenizer.vocabulary, usable, limit)
    counts[PAD] = 0
    chances = objective.chances(counts) if objective.subsample else None
    kept = counts if chances is None else counts * chances
    layout = Layout.of(
        lengths,
        batch,
        prepared.config.microbatch,
        replicas=objective.replicas,
        share=kept.sum() / counts.sum(),
        window=objective.window,
        drawn=objective.drawn,
        negatives=objective.negatives,
        windows=len(objective.windows),
    )
    noise = np.cumsum(counts**POWER)
    return WordBatches(
        corpus=corpus,
        documents=usable,
        views=_paraphrases(prepared) if paraphrases else None,
        noise=noise / noise[-1],
        layout=layout,
        batch=batch,
        limit=limit,
        seed=prepared.config.seed,
        replicas=objective.replicas,
        chances=chances,
    )


def _paraphrases(prepared: Prepared) -> Views:
    """The views, which give a whole batch of documents and paraphrases in one call."""
    views = prepared.views
    if not views.many_documents:
        raise UserError(
            "objective negative_sampling reads views of docjax.views.replaced or "
            f"docjax.views.rewritten, not {type(views).__name__}: change --config.views"
        )
    return views


def _usable(prepared: Prepared) -> tuple[Int[np.ndarray, " u"], Int[np.ndarray, " u"]]:
    """The rows of the documents that have words, and their numbers of words; warns of
    documents without words."""
    limit, rows = prepared.config.limits.training_units, prepared.trained_on
    lengths = prepared.corpus.sizes(rows, limit)
    usable = rows[lengths > 0]
    if not len(usable):
        raise UserError(
            "no training document has a word of the vocabulary: check "
            "--config.tokenizer"
        )
    if len(usable) < len(rows):
        logger.warning(
            "%d of %d training documents have no word of the vocabulary: they are not "
            "trained on, and their vectors are zero",
            len(rows) - len(usable),
            len(rows),
        )
    log_cut(prepared.corpus.counts[usable], limit)
    return usable, lengths[lengths > 0]


def _optimizer(config: RunConfig, replicas: int) -> RowOptimizer:
    optimizer = config.optimizer.built
    if not isinstance(optimizer, RowOptimizer):
        raise UserError(
            f"optimizer {config.optimizer.fn} updates whole tables, not single rows: "
            "set --config.optimizer.fn to docjax.training.rows.Adagrad or Adam"
        )
    if replicas > 1 and not optimizer.adds_up:
        raise UserError(
            f"objective.replicas {replicas}: the changes of replicas are added up, but "
            f"the moments of {config.optimizer.fn} cannot be added; set "
            "--config.objective.replicas to 1, or train with "
            "docjax.training.rows.Adagrad"
        )
    return optimizer


def _check(encoder: DocumentEncoder, limits: Limits) -> None:
    if not encoder.segment.averages_words:
        raise UserError(
            "objective negative_sampling trains encoder.segment "
            "docjax.encoders.word_average.WordAverage, not "
            f"{type(encoder.segment).__name__}: change --config.encoder.segment.fn"
        )
    if encoder.frozen or not isinstance(encoder.document, Mean):
        raise UserError(
            "objective negative_sampling trains the segment encoder alone, and "
            "documents are means of its vectors: encoder.frozen is "
            f"{encoder.frozen!r} and encoder.document "
            f"{type(encoder.document).__name__}; set them to '' and "
            "docjax.encoders.pooling.Mean"
        )
    for name in ("training_segments", "training_tokens"):
        if most := getattr(limits, name):
            raise UserError(
                f"limits.{name} {most}: words are read in blocks, not in segments; set "
                "--config.limits.training_units instead, or no limit"
            )
