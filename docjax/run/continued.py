"""Checks a config, before documents are read, and against the run it resumes.

A run resumes with the config it began with; only the fields in `FREE` may change.
"""

import dataclasses
from pathlib import Path

from docjax.encoders.shapes import check_kind, check_sizes, check_vectors, shapes
from docjax.errors import UserError
from docjax.run.fields import FIELDS, Prompts, RunConfig, begun

# Fields that may change on resume.
FREE = (
    *("log_every", "evaluate_every", "checkpoint_every"),
    *("report", "tensorboard", "profile"),
)


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
    if config.class_count == 0:
        config = config.with_classes(2)
    check_kind(config.encoder.built, Path("config"))
    if config.encoder.built.segment.vocabulary == 0:
        config = config.with_vocabulary(2)
    shapes(config.encoder.built, Path("config"))
    check_vectors(config.encoder.built, Path("config"))


def check_same(config: RunConfig, run: Path, saved: RunConfig | None) -> None:
    """Raises UserError if training has begun in `run` with another config, `saved`."""
    if saved is None:
        return
    saved, config = _with_prompts(saved), _with_prompts(config)
    if config.class_count == 0:  # the documents fill it in later
        config = config.with_classes(saved.class_count)
    if saved.graph is None and config.encoder.built.nested:  # no document has sections
        config = config.without_branch()
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
