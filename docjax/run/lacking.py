"""What a run lacks before it can begin, told all at once: weights, files, documents."""

import itertools
from collections.abc import Callable
from typing import Any

from docjax.errors import UserError
from docjax.huggingface import files
from docjax.run.fields import RunConfig, is_run


def check(config: RunConfig) -> None:
    """Raises UserError for a run that lacks several things; it names each of them, with
    what gets it.

    A run calls it when one thing is missing, so that others need no further try.
    """
    checks = _weights, _files, _documents
    reasons = [reason for each in checks if (reason := _reason(each, config))]
    if len(reasons) > 1:
        numbered = (f"({i}) {reason}" for i, reason in enumerate(reasons, 1))
        raise UserError(f"the run lacks {len(reasons)} things: {'; '.join(numbered)}")


def _reason(check: Callable[[RunConfig], Any], config: RunConfig) -> str:
    try:
        check(config)
    except UserError as error:
        return str(error)
    return ""


def _weights(config: RunConfig) -> None:
    if config.init and not is_run(config.init):
        try:
            files.find(config.init)
        except UserError as error:
            raise UserError(
                f"{error}; with a network: hf download {config.init}, and for another "
                "encoder: --config.init=FOLDER"
            ) from None


def _files(config: RunConfig) -> None:
    config.examples.built.files()
    if config.reads_views:
        config.views.built.files()


def _documents(config: RunConfig) -> None:
    """Raises UserError if the source cannot be read, or a batch could not be filled."""
    most = config.batch or 1
    count = sum(1 for _ in itertools.islice(config.source.built(), most))
    if count < most:
        raise UserError(
            f"the source has {count} documents, and a step reads {most}: give more "
            f"documents, or --config.batch={max(count // 2, 1)}"
        )
