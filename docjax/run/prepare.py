"""Builds what a config names: tokenizer, corpora, examples, views and encoder.

Training and evaluation start here. `corpora.py` reads the documents, `parameters.py`
makes the parameters, and `docs/design.md` lists the fields of a config.
"""

import dataclasses
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import numpy as np

from docjax.data.halved import MOST as MOST_HALVED
from docjax.data.halved import Halved
from docjax.data.prompts import prompted
from docjax.data.tokenizer import check_fits
from docjax.errors import UserError
from docjax.huggingface import files
from docjax.objectives.facts import facts_of
from docjax.parts import outside
from docjax.run import continued, corpora, fields, from_data, from_init, lacking
from docjax.run.check_parts import check_parts
from docjax.run.fields import RunConfig
from docjax.run.prepared import Prepared
from docjax.storage import json_file
from docjax.storage.processes import wait
from docjax.types import DOCUMENT

logger = logging.getLogger(__name__)


def prepare(config: Any, run: Path) -> Prepared:
    """Builds all parts of a run except its parameters, and writes config.json.

    Raises:
      UserError: for a mistake in a field, bad documents, a tokenizer that does not fit,
        or a run directory of another config.
    """
    wait("start")  # a later first wait would not outlast the tokenizer
    config = fields.resolve(config)
    saved = fields.begun_with(run, config.allow)
    try:
        config = checked(config, run, saved)
    except UserError:
        lacking.check(config)
        raise
    _make(run)
    tokenizer = corpora.tokenizer(config, run, saved is not None)
    config = from_data.fill_vocabulary(config, tokenizer.vocabulary)
    continued.check_same(config, run, saved)
    vocabulary = config.encoder.built.segment.vocabulary
    check_fits(tokenizer, vocabulary, loaded=bool(config.init))
    of_documents = prompted(tokenizer, config.prompts.document)
    corpus = corpora.corpus(config, run, saved is not None, of_documents)
    of_queries = prompted(tokenizer, config.prompts.query)
    classes = sorted({label for label in corpus.labels if label is not None})
    config = from_data.fill_classes(config, classes)
    prepared = Prepared(
        config=config,
        run=run,
        tokenizer=tokenizer,
        corpus=corpus,
        queries=corpora.queries(config, run, of_queries),
        classes=classes,
        encoder=config.encoder.built,
        begun=saved is not None,
    )
    _check_splits(prepared)
    config = from_data.fill_branch(config, saved, corpus, prepared.trained_on)
    prepared = prepared.changed(config=config, encoder=config.encoder.built)
    config = from_data.fill_batch(config, saved, lambda: len(prepared.examples))
    special, reads_queries = prepared.frames[DOCUMENT].special, bool(prepared.queries)
    config = from_data.fill_microbatch(config, saved, special, reads_queries)
    prepared = prepared.changed(config=config, halved=_halved(prepared))
    wait("config")
    if jax.process_index() == 0:
        json_file.write(run / "config.json", prepared.config.to_json())
    return prepared


def _make(run: Path) -> None:
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"--workdir {run}: cannot be made ({error.strerror}); name another folder"
        ) from None


def checked(config: RunConfig, run: Path, saved: RunConfig | None) -> RunConfig:
    """The config with what `init` decides, checked before any document is read.

    saved: the config that the run began with; None before its begin.

    Raises:
      UserError: for a mistake in a field, and for parts that cannot be trained.
    """
    config = dataclasses.replace(config, init=_pinned(config.init, run))
    config = from_init.filled(config, saved).with_facts()
    continued.check_compared(config)
    if saved is None:
        continued.check_encoder(config)
        check_parts(config)
        _tell_similarity(config)
        return config
    for change in outside.changes(saved.outside, config.outside):
        logger.warning("%s: %s", run, change)
    return dataclasses.replace(config, outside=saved.outside)


def _tell_similarity(config: RunConfig) -> None:
    """Warns of a loss from outside that does not say how its vectors are compared."""
    says = facts_of(config.objective.built).similarity
    if says is None and not config.objective.fn.startswith("docjax."):
        logger.warning(
            "objective %s does not say how vectors are compared: tasks and searches take "
            "the cosine; docjax.objectives.facts.loss(similarity=...) says it",
            config.objective.fn,
        )


def _pinned(init: str | None, run: Path) -> str | None:
    """`init`; a hub name becomes NAME@COMMIT, the commit that this run began with."""
    path = run / "config.json"
    saved = json_file.read(path).get("init") if path.exists() else None
    if saved and init in (saved, saved.partition("@")[0]):
        return saved
    return files.pinned(init) if init else None


def _halved(prepared: Prepared) -> Halved | None:
    """The documents that training reads as two units, or None; logs what training reads.

    They do not depend on the seed, so that runs on one corpus can share their vectors.
    """
    rows, count = prepared.learnt_from, len(prepared.trained_on)
    if len(prepared.in_reach) < count:
        logger.info(
            "the steps learn from %d of %d training documents, evenly spread, because "
            "they cannot read all",
            *(len(rows), count),
        )
    tokens = prepared.config.reads_views and prepared.config.views.built.halve_from
    if not tokens:
        return None
    most = MOST_HALVED if prepared.is_read_once else None
    halved = Halved.of(prepared.corpus, prepared.in_reach, tokens, most)
    single = rows[prepared.corpus.counts[rows] == 1]
    in_two = int(np.isin(single, halved.rows).sum())
    logger.info(
        "training reads %d documents as two halves; both views of %d others of one unit "
        "are the whole text",
        *(in_two, len(single) - in_two),
    )
    return halved


def _check_splits(prepared: Prepared) -> None:
    """Warns of splits without a name in the config, whose documents a transductive run
    trains on all the same. Raises UserError if there are no documents to train on."""
    config, sizes = prepared.config, Counter(prepared.corpus.splits)
    corpora.check_trained(config, sizes)
    known = {None, *dataclasses.asdict(config.splits).values()}
    for split, count in sizes.items():
        if split not in known:
            use = "in no task" if config.transductive else "not used"
            logger.warning(
                "%d documents are in the split %r: %s; set --config.splits",
                *(count, split, use),
            )
