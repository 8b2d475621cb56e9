"""Fills in what the data decide: vocabulary, classes, batch and micro-batch."""

import dataclasses
import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import numpy as np

from docjax.data.corpus import Corpus
from docjax.data.splits import evenly
from docjax.errors import UserError
from docjax.model.inference import TOKENS
from docjax.run.fields import LARGEST_BATCH, RunConfig, is_run, read

logger = logging.getLogger(__name__)

MOST = 1_000  # documents that say whether there are sections


def fill_vocabulary(config: RunConfig, trained: int) -> RunConfig:
    """The config with the size of the word table: that of the run `init`, or `trained`.

    `trained` is the vocabulary of the tokenizer that this run trained. A tokenizer with
    a path and a Hugging Face `init` leave the config's own size: a word table may be
    larger than its tokenizer.
    """
    size = trained
    if config.init and is_run(config.init):
        before = read(Path(config.init), config.allow)
        size = before.encoder.built.segment.vocabulary
    elif config.init or config.tokenizer.path:
        return config
    return config.with_vocabulary(size)


def fill_classes(config: RunConfig, classes: Sequence[str]) -> RunConfig:
    """The config with the documents' labels, and a head with one class per label.

    Raises:
      UserError: for fewer than 2 labels, or a head with another number of classes.
    """
    count = config.class_count
    if count is None:
        return config
    count = count or len(classes)
    if count != len(classes) or len(classes) < 2:
        raise UserError(
            f"the head has {count} classes, but the documents have {len(classes)} "
            "labels; at least 2 labels are needed; set encoder.head.classes to their "
            "number"
        )
    return dataclasses.replace(config.with_classes(count), labels=tuple(classes))


def fill_branch(
    config: RunConfig, saved: RunConfig | None, corpus: Corpus, rows: np.ndarray
) -> RunConfig:
    """The config without a branch that a run may leave out (`FromMean.nested`), if most
    of the documents `rows` have no sections to attend between.

    saved: the config that the run began with, if it has begun.
    """
    if not config.encoder.built.nested:
        return config
    sample = evenly(rows, MOST).tolist()
    many = sum(len(np.unique(corpus[row].sections)) > 1 for row in sample)
    has_sections = saved.graph is not None if saved else 2 * many > len(sample)
    if has_sections:
        return config
    logger.info("most documents have no sections: no attention between sections")
    return config.without_branch()


def fill_batch(
    config: RunConfig, saved: RunConfig | None, count: Callable[[], int]
) -> RunConfig:
    """The config with a batch that fits the corpus, before anything is encoded.

    Args:
      saved: the config that the run began with, if it has begun.
      count: counts the training examples, which takes time.

    Raises:
      UserError: for a batch of more examples than there are.
    """
    if config.batch is not None:
        return config
    if saved:
        return dataclasses.replace(config, batch=saved.batch)
    devices, examples = jax.device_count(), count()
    most = min(LARGEST_BATCH, examples // 2)
    batch = 1 << max(most.bit_length() - 1, 0)
    batch = max(batch // devices * devices, devices)
    if batch > examples:
        raise UserError(
            f"{examples} training examples are too few for {devices} devices: give "
            "more documents"
        )
    logger.info("batch %d, for %d training examples", batch, examples)
    return dataclasses.replace(config, batch=batch)


def fill_microbatch(
    config: RunConfig, saved: RunConfig | None, special: int, reads_queries: bool
) -> RunConfig:
    """The config with micro-batches of at most TOKENS tokens on each device.

    A single segment may have more. `limits.training_segments` says how many segments a
    batch has at most: if it has so many, they fill the micro-batches evenly.

    Args:
      saved: the config that the run began with, if it has begun.
      special: the tokens that frame a segment of a document.
      reads_queries: the examples have queries.

    Raises:
      UserError: for an objective that reads blocks of words.
    """
    if config.microbatch is not None:
        return config
    if saved:
        return dataclasses.replace(config, microbatch=saved.microbatch)
    if config.reads_words:
        raise UserError(
            "microbatch is None: negative sampling reads blocks of words; set "
            "--config.microbatch to the words of a block, such as 2048"
        )
    longest = _longest_trained(config, special, reads_queries)
    devices = jax.device_count()
    microbatch = max(1, TOKENS // longest) * devices
    if most := _most_segments(config):
        even = math.ceil(most / math.ceil(most / microbatch))
        microbatch = math.ceil(even / devices) * devices
    logger.info("microbatch %d, for segments of at most %d tokens", microbatch, longest)
    return dataclasses.replace(config, microbatch=microbatch)


def _most_segments(config: RunConfig) -> int | None:
    """The most segments of a batch; None without a limit on those of a view."""
    limit, batch = config.limits.training_segments, config.batch
    if limit is None or batch is None:
        return None
    kinds = config.examples.built.kinds, config.views.built.kinds
    return limit * batch * max(map(len, kinds))


def _longest_trained(config: RunConfig, special: int, reads_queries: bool) -> int:
    """The most tokens of a segment that training reads, by the limits."""
    limits, longest = config.limits, config.limits.segment_tokens
    if limits.training_tokens:
        longest = min(longest, limits.training_tokens + special)
    return max(longest, limits.query_segment if reads_queries else 0)
