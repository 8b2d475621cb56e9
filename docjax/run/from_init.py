"""Fills in what `init` decides: sizes, pooling, normalisation, length and prompts.

A Hugging Face folder or a run knows these facts of its encoder, so a config need not
repeat them. The sizes in a config are for training from scratch.
"""

import dataclasses
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from docjax.data.prompts import document_prompt
from docjax.encoders.token_encoder import TokenEncoder
from docjax.errors import UserError
from docjax.huggingface.family import decided
from docjax.run.fields import Prompts, RunConfig, is_run, read
from docjax.run.places import Part

logger = logging.getLogger(__name__)


def filled(
    config: RunConfig, saved: RunConfig | None, describe: Callable[[str], Any]
) -> RunConfig:
    """The config with the sizes of `init`: a Hugging Face folder or name, or a run.

    `pooling` of the segment encoder and `normalize` of the document encoder come from
    `init` where the config says None, and so do `prompts`. `limits.segment_tokens` is
    lowered to what `init` can read. A run that has begun keeps what it began with, which
    is `saved`.
    `describe` gives the `docjax.huggingface.weights.Facts` of a folder or name.

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
        return _as_begun(config if of_run else _of_kind(config, saved), saved)
    facts = describe(config.init)
    segment = _segment(config.encoder)
    module = config.encoder.built.inner_segment
    if type(module) is not facts.family.module:
        segment = _as_kind(segment, module, config.init, facts.family.module)
    sizes = {k: v for k, v in facts.keywords.items() if k in decided()}
    if "pooling" in segment and segment["pooling"] is None:
        sizes["pooling"] = facts.pooling
    _log_pooling(config, segment, facts)
    _log_left_out(config.init, facts)
    encoder = _with_segment(config.encoder, segment | sizes)
    encoder = _normalized(encoder, facts)
    return dataclasses.replace(
        config,
        encoder=encoder,
        limits=_limits(config, facts),
        prompts=_prompts(config, facts),
    )


def _log_pooling(config: RunConfig, segment: Mapping[str, Any], facts: Any) -> None:
    """Says where the pooling is a guess, and where it is not that of `init`."""
    field = "encoder.segment.pooling"
    if "encoder" in config.encoder.keywords["segment"]:
        field = "encoder.segment.encoder.pooling"
    pooling = segment.get("pooling", facts.pooling)
    if pooling is None and not facts.says_pooling:
        logger.warning(
            "init %s does not say how the vectors of tokens become one vector: docjax "
            "takes their mean; if it was trained otherwise, set --config.%s=first",
            *(config.init, field),
        )
    if pooling not in (None, facts.pooling) and facts.says_pooling:
        logger.info(
            "%s is %r, but init %s pools by %r: --config.%s=%s does so too",
            *(field, pooling, config.init, facts.pooling, field, facts.pooling),
        )


def _log_left_out(init: str, facts: Any) -> None:
    if facts.others:
        logger.warning(
            "init %s is an export, of which a run takes the segment encoder only, "
            "without %s: give the run that it was made of to keep them",
            *(init, " and ".join(facts.others)),
        )


def _as_kind(
    segment: Mapping[str, Any], module: Any, init: str, kind: type
) -> Mapping[str, Any]:
    """The config of a segment encoder for another class, without the sizes.

    Raises:
      UserError: if the classes differ in more than sizes.
    """
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


def _without_sizes(segment: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a segment encoder that `init` does not decide."""
    return {k: v for k, v in segment.items() if k not in ("fn", *decided())}


def _of_kind(config: RunConfig, saved: RunConfig) -> RunConfig:
    """The config with the kind of transformer that `init` gave the run."""
    ours, kind = _segment(config.encoder), _segment(saved.encoder)["fn"]
    if ours["fn"] == kind:
        return config
    encoder = _with_segment(config.encoder, {"fn": kind} | _without_sizes(ours))
    return dataclasses.replace(config, encoder=encoder)


def _as_begun(config: RunConfig, saved: RunConfig) -> RunConfig:
    """The config with the facts that a run began with."""
    ours, theirs = _segment(config.encoder), _segment(saved.encoder)
    if ours["fn"] != theirs["fn"]:  # a run `init` that does not fit, told later
        return config
    sizes = {key: value for key, value in theirs.items() if key in decided()}
    if ours.get("pooling", "") is None:
        sizes["pooling"] = theirs["pooling"]
    encoder = _with_segment(config.encoder, ours | sizes)
    document = encoder.keywords["document"]
    if document.get("normalize", False) is None:
        normalize = saved.encoder.keywords["document"].get("normalize")
        encoder = encoder.with_keywords(document=document | {"normalize": normalize})
    most = min(config.limits.segment_tokens, saved.limits.segment_tokens)
    limits = dataclasses.replace(config.limits, segment_tokens=most)
    prompts = config.prompts.filled(saved.prompts)
    return dataclasses.replace(config, encoder=encoder, limits=limits, prompts=prompts)


def _segment(encoder: Part) -> Mapping[str, Any]:
    """The config of the segment encoder; with towers, of the encoder inside."""
    segment = encoder.keywords["segment"]
    return segment.get("encoder", segment)


def _with_segment(encoder: Part, segment: Mapping[str, Any]) -> Part:
    outer = encoder.keywords["segment"]
    if "encoder" in outer:
        segment = outer | {"encoder": segment}
    return encoder.with_keywords(segment=segment)


def _normalized(encoder: Part, facts: Any) -> Part:
    document = encoder.keywords["document"]
    if "normalize" not in document or document["normalize"] is not None:
        return encoder
    return encoder.with_keywords(document=document | {"normalize": facts.normalize})


def _prompts(config: RunConfig, facts: Any) -> Prompts:
    """The prompts of the config, else those of `init`.

    Raises:
      UserError: for prompts that the mean of a segment's tokens has to leave out.
    """
    words = document_prompt(facts.prompts, facts.default_prompt_name)
    given = Prompts(words, facts.prompts.get("query", ""))
    prompts = config.prompts.filled(given)
    if prompts.by_name() and not facts.include_prompt:
        raise UserError(
            f"init {config.init} leaves prompts out of the mean of a segment's tokens, "
            "which training does not: set --config.prompts.document= and "
            "--config.prompts.query= to train without prompts"
        )
    for name, prompt in prompts.by_name().items():
        logger.info("each %s has the prompt %r", name, prompt)
    return prompts


def _limits(config: RunConfig, facts: Any) -> Any:
    limits = config.limits
    if limits.segment_tokens > facts.max_tokens:
        logger.info(
            "limits.segment_tokens is %d, as init %s asks, not %d",
            facts.max_tokens,
            config.init,
            limits.segment_tokens,
        )
        return dataclasses.replace(limits, segment_tokens=facts.max_tokens)
    return limits
