"""Fills in what `init` decides: sizes, pooling, normalisation, length and prompts.

A Hugging Face folder or a run knows these facts of its encoder, so a config need not
repeat them. The sizes in a config are for training from scratch.
"""

import dataclasses
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docjax.data.prompts import document_prompt
from docjax.encoders.token_encoder import TokenEncoder
from docjax.errors import UserError
from docjax.huggingface import weights
from docjax.huggingface.family import decided
from docjax.run.fields import Prompts, RunConfig, is_run, read

logger = logging.getLogger(__name__)


def filled(config: RunConfig, saved: RunConfig | None) -> RunConfig:
    """The config with the sizes of `init`: a Hugging Face folder or name, or a run.

    Pooling, normalisation and prompts come from `init` where the config says None, and
    `limits.segment_tokens` is lowered to what `init` can read. A run that has begun keeps
    what it began with, which is `saved`.

    If `init` is another kind of transformer than the config's, the config's becomes that
    kind, with its own keywords for what `init` does not decide.

    Raises:
      UserError: for a segment encoder that cannot become that of `init`, and for prompts
        that the mean of a segment's tokens has to leave out.
    """
    if not config.init:
        return config
    of_run = is_run(config.init)
    if of_run or saved:
        saved = saved or read(Path(config.init), config.allow)
        return _as_begun(config, saved, of_run)
    facts = weights.describe(config.init)
    segment = config.segment
    module = config.encoder.built.inner_segment
    if type(module) is not facts.family.module:
        segment = _as_kind(segment, module, config.init, facts.family.module)
    _log_pooling(config, segment, facts)
    words = document_prompt(facts.prompts, facts.default_prompt_name)
    filled_config = _completed(
        config,
        segment | _sizes(facts.keywords),
        pooling=facts.pooling,
        normalize=facts.normalize,
        most=facts.max_tokens,
        prompts=Prompts(words, facts.prompts.get("query", "")),
    )
    _tell(filled_config, config.limits.segment_tokens, facts)
    return filled_config


def _completed(
    config: RunConfig,
    segment: dict[str, Any],
    pooling: str | None,
    normalize: bool | None,
    most: int,
    prompts: Prompts,
) -> RunConfig:
    """The config with this segment encoder, whose segments have at most `most` tokens,
    and with the rest where the config says None."""
    if segment.get("pooling", "") is None:
        segment["pooling"] = pooling
    config = config.with_segment(segment)
    document = config.encoder.keywords["document"]
    if document.get("normalize", False) is None:
        config = config.with_encoder(document=document | {"normalize": normalize})
    tokens = min(config.limits.segment_tokens, most)
    limits = dataclasses.replace(config.limits, segment_tokens=tokens)
    prompts = config.prompts.filled(prompts)
    return dataclasses.replace(config, limits=limits, prompts=prompts)


def _log_pooling(config: RunConfig, segment: Mapping[str, Any], facts: Any) -> None:
    """Says where the pooling is a guess, and where it is not that of `init`."""
    field = "encoder.segment.encoder" if config.has_towers else "encoder.segment"
    pooling = segment.get("pooling", facts.pooling)
    if pooling is None and not facts.says_pooling:
        logger.warning(
            "init %s does not say how the vectors of tokens become one vector: docjax "
            "takes their mean; if it was trained otherwise, set --config.%s.pooling=first",
            *(config.init, field),
        )
    if pooling not in (None, facts.pooling) and facts.says_pooling:
        logger.info(
            "%s.pooling is %r, but init %s pools by %r: --config.%s.pooling=%s does "
            "so too",
            *(field, pooling, config.init, facts.pooling, field, facts.pooling),
        )


def _as_kind(
    segment: Mapping[str, Any], module: Any, init: str, kind: type
) -> Mapping[str, Any]:
    """The config of a segment encoder for another class, without the sizes. Raises
    UserError if the classes differ in more than sizes."""
    name = f"{kind.__module__}.{kind.__name__}"
    kept = _without_sizes(segment)
    lacking = sorted(set(kept) - set(kind.__dataclass_fields__))
    if lacking or not isinstance(module, TokenEncoder):
        reason = f", which has no {', '.join(lacking)}" if lacking else ""
        raise UserError(
            f"init {init} does not fit encoder.segment {segment['fn']}: its weights are "
            f"for {name}{reason}; give an init of another kind, or a config that has "
            "that segment encoder"
        )
    logger.info(
        "encoder.segment is %s, as init %s asks, not %s", name, init, segment["fn"]
    )
    return {"fn": name} | kept


def _sizes(segment: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a segment encoder that `init` decides."""
    return {k: v for k, v in segment.items() if k in decided()}


def _without_sizes(segment: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a segment encoder that `init` does not decide."""
    return {k: v for k, v in segment.items() if k not in ("fn", *decided())}


def _as_begun(config: RunConfig, saved: RunConfig, is_init: bool) -> RunConfig:
    """The config with the facts of the run `init`, or with those that it began with."""
    ours, theirs = config.segment, saved.segment
    if ours["fn"] != theirs["fn"]:
        if is_init:  # it does not fit, which is told later
            return config
        ours = {"fn": theirs["fn"]} | _without_sizes(ours)
    return _completed(
        config,
        ours | _sizes(theirs),
        pooling=theirs.get("pooling"),
        normalize=saved.encoder.keywords["document"].get("normalize"),
        most=saved.limits.segment_tokens,
        prompts=saved.prompts,
    )


def _tell(config: RunConfig, asked: int, facts: Any) -> None:
    """Logs what a folder has beside its segment encoder, and the prompts and the length
    that it decided, where the config `asked` for so many tokens. Raises UserError for
    prompts that the mean of a segment's tokens has to leave out."""
    given = config.prompts.by_name()
    if given and not facts.include_prompt:
        raise UserError(
            f"init {config.init} leaves prompts out of the mean of a segment's tokens, "
            "which training does not: set --config.prompts.document= and "
            "--config.prompts.query= to train without prompts"
        )
    for name, prompt in given.items():
        logger.info("each %s has the prompt %r", name, prompt)
    tokens = config.limits.segment_tokens
    if tokens < asked:
        logger.info(
            "limits.segment_tokens is %d, as init %s asks, not %d",
            *(tokens, config.init, asked),
        )
    if facts.others:
        logger.warning(
            "init %s is an export, of which a run takes the segment encoder only, "
            "without %s: give the run that it was made of to keep them",
            *(config.init, " and ".join(facts.others)),
        )
