"""Trains word tables by predicting words (`objectives/negative_sampling.py`).

A step reads the documents of a batch: block after block, each with an update of the
rows it has read; then, if paraphrases are asked for, one update by the contrastive loss
of all documents of the batch.
"""

import functools
from typing import Any, NamedTuple

import grain
import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl import logging
from jaxtyping import Array, Float

from docjax import config as config_lib
from docjax.config import UserError
from docjax.data import blocks
from docjax.data.batches import log_cut
from docjax.data.blocks import Blocks, Groups, WordBatches
from docjax.encoders.document import DocumentEncoder
from docjax.encoders.pooling import Mean
from docjax.encoders.words import WordAverage
from docjax.objectives.negative_sampling import NegativeSampling, Rows
from docjax.prepare import Prepared
from docjax.products import row_sums
from docjax.training import sharding
from docjax.training.rows import Adagrad, Adam, Gradient
from docjax.training.step import State
from docjax.views.words import WordViews

POWER = 0.75  # of the word counts, for noise words


class Statistics(NamedTuple):
    """Of the optimizers."""

    words: Any
    targets: Any
    head: Any


class WordTrainer:
    """The training of a WordAverage encoder with NegativeSampling."""

    def __init__(
        self, prepared: Prepared, objective: NegativeSampling, mesh: jax.sharding.Mesh
    ):
        _check(prepared.encoder)
        if mesh.size > 1:
            logging.warning(
                "words are trained on one device: all %d do the same work", mesh.size
            )
        self.prepared, self.objective, self.mesh = prepared, objective, mesh
        self.optimizer = _optimizer(prepared.config)
        self.head_optimizer = optax.adam(objective.head_learning_rate)
        self.contrastive = objective.contrastive if objective.weight > 0 else None
        self.batches = _batches(prepared, objective, self.contrastive is not None)

    @property
    def epoch_steps(self) -> int:
        return self.batches.epoch_steps

    def dataset(self, steps: int) -> grain.MapDataset:
        """To be called once, before the first step: the learning rate falls over them."""
        self.steps = steps
        return self.batches.dataset(steps)

    def put(self, batch: Blocks) -> Blocks:
        """The batch on the devices, on all of them the same."""
        if self.mesh.size == 1:  # faster
            return jax.device_put(batch)
        return sharding.replicate(batch, self.mesh)

    def begin(self, params: Any) -> State:
        tables = params["segment"]
        statistics = Statistics(
            self.optimizer.init(tables["words"]),
            self.optimizer.init(tables["targets"]),
            self.head_optimizer.init(params.get("head", {})),
        )
        return State(jnp.zeros([], jnp.int32), params, statistics)

    def measure(self, batch: Blocks) -> tuple[int, float]:
        """Words, and the share of computed places that hold none."""
        words = int(batch.total)
        return words, 1 - words / (int(batch.used) * batch.words[0].size)

    @functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
    def step(
        self, state: State, batch: Blocks, key: jax.Array
    ) -> tuple[State, dict[str, Float[Array, ""]]]:
        """All blocks of the batch, then its contrastive loss."""
        decay = jnp.maximum(1 - state.step / self.steps, 1e-4)

        def block(i, carry):
            state, sums = carry
            state, of_block = self._block(state, batch, i, decay)
            return state, sums + of_block

        begun = state, jnp.zeros(2)
        state, (loss, square) = jax.lax.fori_loop(0, batch.used, block, begun)
        words = batch.total
        # The norm is that of all parts of the rows' gradients, before they are summed.
        metrics = {"loss": loss / words, "grad_norm": jnp.sqrt(square)}
        if self.contrastive is not None:
            key = jax.random.fold_in(key, state.step)  # blocks come with their draws
            state, loss, found = self._contrast(state, batch.views, words, decay, key)
            metrics |= found | {"words_loss": metrics["loss"], "contrastive_loss": loss}
            metrics["loss"] += self.objective.weight * loss
        return state._replace(step=state.step + 1), metrics

    def _block(self, state: State, batch: Blocks, i, decay):
        """One block: the gradient of its rows, and their update."""
        words, drawn, noise = batch.words[i], batch.drawn[i], batch.noise[i]
        u, v = state.params["segment"]["words"], state.params["segment"]["targets"]
        rows = Rows(u[words], u[drawn], v[words], v[noise])
        loss, found = self.objective.gradient(
            rows, words, batch.estimates[i], noise, batch.windows[i]
        )
        of_words = Gradient(words, found.words), Gradient(drawn, found.drawn)
        of_targets = Gradient(words, found.targets), Gradient(noise, found.noise)
        # Adagrad has these sums, too: they are computed once.
        square = sum(row_sums(one**2).sum() for one in found)
        state = self._update(state, of_words, of_targets, decay)
        return state, jnp.stack([loss, square])

    def _update(self, state: State, of_words, of_targets, decay) -> State:
        tables, statistics = dict(state.params["segment"]), state.optimizer
        found = {}
        for name, gradients in (("words", of_words), ("targets", of_targets)):
            found[name] = getattr(statistics, name)
            if gradients:
                tables[name], found[name] = self.optimizer.update(
                    tables[name], found[name], gradients, decay
                )
        tables["words"] = tables["words"].at[blocks.PAD].set(0.0)
        params = state.params | {"segment": tables}
        return state._replace(params=params, optimizer=statistics._replace(**found))

    def _contrast(self, state: State, views: Groups, words, decay, key):
        """One update by the contrastive loss, weighted as the words are.

        key: of the dropout of a predictor; None for none.
        """
        table, head = state.params["segment"]["words"], state.params.get("head", {})
        lengths = jnp.maximum(views.lengths, 1)[..., None]
        vectors = _sums(table, views) / lengths

        def loss_fn(vectors, head):
            params = {"params": {"head": head} if head else {}}
            apply = functools.partial(self.prepared.encoder.apply, params)
            return self.contrastive(apply(vectors, key, method="outputs"))

        (loss, metrics), (found, of_head) = jax.value_and_grad(
            loss_fn, (0, 1), has_aux=True
        )(vectors, head)
        found = found * self.objective.weight * words / lengths
        of_words = _spread(found, views, len(table))
        state = self._update(state, [of_words], (), decay)
        if head:
            statistics = state.optimizer
            updates, moments = self.head_optimizer.update(of_head, statistics.head)
            params = state.params | {"head": optax.apply_updates(head, updates)}
            state = state._replace(
                params=params, optimizer=statistics._replace(head=moments)
            )
        return state, loss, metrics


def _sums(table: Float[Array, "n d"], views: Groups) -> Float[Array, "v b d"]:
    """The sum of the vectors of each document's words."""

    def read(i, sums):
        # Sums of a group first: they are many times faster than those of rows.
        of_groups = sum(table[words] for words in views.words[i].T)
        return sums.at[views.owners[i]].add(of_groups)

    sums = jnp.zeros((views.lengths.size + 1, table.shape[1]))
    sums = jax.lax.fori_loop(0, views.used, read, sums)
    return sums[:-1].reshape(*views.lengths.shape, table.shape[1])


def _spread(found: Float[Array, "v b d"], views: Groups, size: int) -> Gradient:
    """The gradient of a table of `size` rows from that of the sums, each row once."""
    of_word = jnp.pad(found.reshape(-1, found.shape[-1]), ((0, 1), (0, 0)))

    def add(i, total):
        return total.at[views.words[i]].add(of_word[views.owners[i]][:, None])

    total = jnp.zeros((size, found.shape[-1]), found.dtype)
    total = jax.lax.fori_loop(0, views.used, add, total)
    in_use = jnp.zeros(size, bool).at[views.words].set(True)
    return Gradient(jnp.where(in_use, jnp.arange(size), size), total)


def _batches(
    prepared: Prepared, objective: NegativeSampling, paraphrases: bool
) -> WordBatches:
    """The documents that are trained on; says which have no words."""
    corpus, rows = prepared.corpus, prepared.trained_on
    limit = prepared.config["limits"]["training_segments"]
    views = prepared.views if paraphrases else None
    if paraphrases and not isinstance(views, WordViews):
        raise UserError(
            "objective negative_sampling reads views of docjax.views.words or rewritten, "
            f"not {type(views).__name__}"
        )
    lengths = corpus.sizes(rows, limit)
    usable = rows[lengths > 0]
    if len(usable) < len(rows):
        logging.warning(
            "%d of %d training documents have no word of the vocabulary: not trained "
            "on, their vectors are zero",
            len(rows) - len(usable),
            len(rows),
        )
    if not len(usable):
        raise UserError("no training document has a word of the vocabulary")
    log_cut(corpus.counts[usable], limit)
    batch = min(prepared.config["batch"], len(usable))
    counts = corpus.word_counts(prepared.tokenizer.vocabulary, usable, limit)
    counts[blocks.PAD] = 0
    chances = objective.chances(counts) if objective.subsample else None
    read = counts if chances is None else counts * chances
    layout = blocks.Layout.of(
        lengths[lengths > 0],
        batch,
        prepared.config["microbatch"],
        share=read.sum() / counts.sum(),
        window=objective.window,
        drawn=objective.drawn,
        negatives=objective.negatives,
        windows=len(objective.windows),
    )
    noise = np.cumsum(counts**POWER)
    return WordBatches(
        corpus=corpus,
        documents=usable,
        views=views,
        noise=noise / noise[-1],
        layout=layout,
        batch=batch,
        limit=limit,
        seed=prepared.config["seed"],
        chances=chances,
    )


def _optimizer(config: dict[str, Any]) -> Adagrad | Adam:
    found = config_lib.build(config["optimizer"])
    if not isinstance(found, (Adagrad, Adam)):
        raise UserError(
            f"optimizer {config['optimizer']['fn']} updates whole tables: words are "
            "trained with docjax.training.rows.Adagrad or Adam"
        )
    return found


def _check(encoder: DocumentEncoder) -> None:
    if not isinstance(encoder.segment, WordAverage):
        raise UserError(
            "objective negative_sampling trains encoder.segment "
            f"docjax.encoders.words.WordAverage, not {type(encoder.segment).__name__}"
        )
    if encoder.frozen or not isinstance(encoder.document, Mean):
        raise UserError(
            "objective negative_sampling trains the segment encoder alone, documents are "
            f"means of its vectors: encoder.frozen is {encoder.frozen} and encoder.document "
            f"{type(encoder.document).__name__}, which need False and "
            "docjax.encoders.pooling.Mean"
        )
