"""The documents of a run with the vectors of the encoder `init` alone, for its report."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
from absl import logging

from docjax.data.prompts import document_prompt
from docjax.data.units import Passages, Whole, WholeSections
from docjax.encoders.document import DocumentEncoder
from docjax.encoders.pooling import Mean
from docjax.encoders.token_encoder import TokenEncoder
from docjax.errors import UserError
from docjax.huggingface import weights
from docjax.model.load import load
from docjax.run.fields import Prompts, is_run
from docjax.run.parameters import start_params
from docjax.run.prepare import Prepared
from docjax.run.scoring import RunData, RunTexts
from docjax.types import TaskData


def plain_data(
    prepared: Prepared, mesh: jax.sharding.Mesh
) -> dict[str, Callable[[], TaskData]]:
    """The vectors that a user has of `init` alone: cut at its limit, and of all words.

    Empty unless `init` is a Hugging Face model. A run that has read all words of the
    documents by `init` has the vectors of their segments; otherwise `init` reads the
    documents when the data are asked for. Where segments end with a section or a
    passage, the mean over all words is that of these segments, and `init` reads the
    text cut at its limit.
    """
    init = prepared.config.init
    if not init or is_run(init):
        return {}
    try:
        facts = weights.describe(init)
    except UserError as error:  # the folder has moved since training began
        logging.warning("the report does without the vectors of init: %s", error)
        return {}
    of_texts = functools.partial(_of_texts, prepared, facts)
    of_run = functools.partial(_of_run, prepared, mesh, facts)
    has_read = _has_read(facts, prepared)
    ends = ends_of_segments(prepared) if has_read else ""
    cut = of_run if has_read and not ends else of_texts
    return {
        f"cut at {facts.max_tokens} tokens": functools.partial(cut, 1),
        f"all words{ends}": functools.partial(of_run if has_read else of_texts, None),
    }


def ends_of_segments(prepared: Prepared) -> str:
    """What ends a segment before the limit of `init` does, as the report names it."""
    units = prepared.config.units.build()
    if isinstance(units, Passages):
        return f", in passages of {units.words} words"
    return ", section by section" if prepared.corpus.has_sections else ""


def _has_read(facts: Any, prepared: Prepared) -> bool:
    """Whether the corpus has vectors of segments as `init` alone reads them, apart from
    `ends_of_segments`."""
    config, segment = prepared.config, prepared.encoder.segment
    limits = config.limits
    return (
        bool(prepared.corpus.vectors)
        and None in (limits.training_units, limits.inference_segments)
        and (config.prompts.document or "") == _own_prompts(prepared, facts).document
        and isinstance(config.units.build(), Whole | WholeSections | Passages)
        and limits.segment_tokens == facts.max_tokens
        and isinstance(segment, TokenEncoder)
        and segment.pooling == facts.pooling
        and not segment.normalize
    )


def _of_run(
    prepared: Prepared, mesh: jax.sharding.Mesh, facts: Any, most: int | None
) -> RunData:
    """The mean of the vectors of the first `most` segments, from the run's corpus."""
    config, corpus = prepared.config, prepared.corpus
    limits = dataclasses.replace(config.limits, inference_segments=most)
    segment = prepared.encoder.segment.clone(words=0)
    alone = dataclasses.replace(
        prepared,
        config=dataclasses.replace(
            config, limits=limits, prompts=_own_prompts(prepared, facts)
        ),
        corpus=corpus.with_vectors(corpus.vectors[0]),
        encoder=DocumentEncoder(segment, Mean(facts.normalize)),
        graph=None,
    )
    params = start_params(config, alone.encoder, prepared.run)
    model, documents = alone.model(params, mesh), prepared.documents
    return RunData(model, documents, prepared=alone, warns=most is None)


def _own_prompts(prepared: Prepared, facts: Any) -> Prompts:
    """The prompts for `init` alone: its own; those of the config where it has none."""
    own = document_prompt(facts.prompts, facts.default_prompt_name)
    asked = prepared.config.prompts.filled(Prompts("", ""))
    return Prompts(own or asked.document, facts.prompts.get("query") or asked.query)


def _of_texts(prepared: Prepared, facts: Any, most: int | None) -> RunTexts:
    """The vectors of the first `most` segments that `init` reads of each document."""
    plain = load(prepared.config.init)
    model = dataclasses.replace(
        plain,
        limits=plain.limits._replace(inference_segments=most),
        prompts=_own_prompts(prepared, facts).by_name(),
        default_prompt_name=None,
    )
    documents, warns = prepared.documents, most is None
    return RunTexts(model, documents, prepared=prepared, warns=warns)
