"""Checks a config against the run it resumes; fills in what the data decide.

A run resumes with the config it began with; only the fields in `FREE` may change.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from docjax.encoders.shapes import check_kind, check_sizes, shapes
from docjax.errors import UserError
from docjax.run.fields import (
    FIELDS,
    Prompts,
    RunConfig,
    begun,
    begun_with,
    is_run,
    read,
)
from docjax.run.places import Part

# Fields that may change on resume.
FREE = ("log_every", "evaluate_every", "checkpoint_every", "report", "tensorboard")


def check_compared(config: RunConfig) -> None:
    """Raises UserError if a run in `report.compare` is missing."""
    for run in config.report.compare:
        if not begun(Path(run)):
            raise UserError(f"report.compare {run}: no run is there; train it first")


def check_encoder(config: RunConfig) -> None:
    """Raises UserError for an encoder whose sizes do not fit; computes nothing.

    A size of 0, such as a vocabulary that the data decide later, counts as 2 here.
    """
    check_sizes(config.encoder.to_json(), Path("config"))
    if _classes(config.encoder) == 0:
        config = _with_classes(config, 2)
    check_kind(config.encoder.build(), Path("config"))
    if config.encoder.build().segment.vocabulary == 0:
        config = _with_vocabulary(config, 2)
    shapes(config.encoder.build(), Path("config"))


def check_same(config: RunConfig, run: Path) -> None:
    """Raises UserError if training has begun in `run` with another config."""
    saved = begun_with(run)
    if saved is None:
        return
    saved = _with_prompts(saved)
    config = _with_prompts(config)
    if _classes(config.encoder) == 0:  # the documents fill it in later
        config = _with_classes(config, _classes(saved.encoder))
    for name in ("batch", "microbatch"):
        if getattr(config, name) is None:  # filled in later
            config = dataclasses.replace(config, **{name: getattr(saved, name)})
    changed = [
        name
        for name in FIELDS
        if name not in FREE and getattr(saved, name) != getattr(config, name)
    ]
    if changed:
        name, was, now = changed[0], saved.to_json(), config.to_json()
        raise UserError(
            f"{run} is a run of another config: {', '.join(changed)} differ ({name} "
            f"was {was[name]}, is {now[name]}); use another --workdir"
        )


def _with_prompts(config: RunConfig) -> RunConfig:
    """The config with "" for prompts that are None, which says the same."""
    prompts = config.prompts.filled(Prompts("", ""))
    return dataclasses.replace(config, prompts=prompts)


def fill_vocabulary(config: RunConfig, trained: int) -> RunConfig:
    """The config with the size of the word table: that of the run `init`, or `trained`.

    `trained` is the vocabulary of the tokenizer that this run trained. A tokenizer with
    a path and a Hugging Face `init` leave the config's own size: a word table may be
    larger than its tokenizer.
    """
    size = trained
    if config.init and is_run(config.init):
        size = read(Path(config.init)).encoder.build().segment.vocabulary
    elif config.init or config.tokenizer.path:
        return config
    return _with_vocabulary(config, size)


def fill_classes(config: RunConfig, classes: Sequence[str]) -> RunConfig:
    """The config with the documents' labels, and a head with one class per label.

    Raises:
      UserError: for fewer than 2 labels, or a head with another number of classes.
    """
    count = _classes(config.encoder)
    if count is None:
        return config
    count = count or len(classes)
    if count != len(classes) or len(classes) < 2:
        raise UserError(
            f"the head has {count} classes, but the documents have {len(classes)} "
            "labels; at least 2 labels are needed; set encoder.head.classes to their "
            "number"
        )
    return dataclasses.replace(_with_classes(config, count), labels=tuple(classes))


def _with_vocabulary(config: RunConfig, size: int) -> RunConfig:
    segment = config.encoder.keywords["segment"]
    if config.encoder.build().segment.has_towers:
        segment = {**segment, "encoder": {**segment["encoder"], "vocabulary": size}}
    else:
        segment = {**segment, "vocabulary": size}
    encoder = config.encoder.with_keywords(segment=segment)
    return dataclasses.replace(config, encoder=encoder)


def _classes(encoder: Part) -> int | None:
    """The `classes` of the encoder's head; None without such a head."""
    return (encoder.keywords.get("head") or {}).get("classes")


def _with_classes(config: RunConfig, count: int | None) -> RunConfig:
    head = {**config.encoder.keywords["head"], "classes": count}
    encoder = config.encoder.with_keywords(head=head)
    return dataclasses.replace(config, encoder=encoder)
