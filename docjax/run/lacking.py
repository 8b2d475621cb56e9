"""What a run lacks before it can begin, told all at once: weights, files, documents."""

import functools
import itertools
import re
from pathlib import Path

from docjax.errors import UserError
from docjax.huggingface import files
from docjax.run import corpora
from docjax.run.fields import RunConfig, is_run
from docjax.types import DOCUMENT


def check(config: RunConfig) -> None:
    """Raises UserError for a run that lacks several things; it names each of them, with
    what gets it.

    A run calls it when one thing is missing, so that others need no further try.
    """
    checks = [_weights, RunConfig.files, _documents]
    checks += [functools.partial(_task_file, name) for name in config.tasks]
    reasons = []
    for each in checks:
        try:
            each(config)
        except UserError as error:
            reasons.append(str(error))
    if len(reasons) > 1:
        numbered = (f"({i}) {reason}" for i, reason in enumerate(reasons, 1))
        raise UserError(f"the run lacks {len(reasons)} things: {'; '.join(numbered)}")


def _weights(config: RunConfig) -> None:
    document, init = config.encoder.built.document, config.init
    if not init and hasattr(document, "check_run"):
        document.check_run(config)
    if init and not is_run(init):
        try:
            files.find(init)
        except UserError as error:
            is_name = re.fullmatch(r"\w[\w.-]*(/[\w.-]+)?(@.*)?", init)
            name = init.partition("@")[0]
            download = f"with a network: hf download {name}, and " if is_name else ""
            raise UserError(
                f"{error}; {download}for another encoder: --config.init=FOLDER"
            ) from None


def _documents(config: RunConfig) -> None:
    """Raises UserError if the source cannot be read, or if examples are documents and
    a batch could not be filled."""
    is_counted = config.examples.built.kinds == (DOCUMENT,) and not config.reads_words
    most = config.batch if config.batch and is_counted else 1
    count = sum(1 for _ in itertools.islice(corpora.documents(config.source), most))
    if count < most:
        trained = sum(1 for _ in corpora.trained_on(config))
        raise UserError(
            f"the source has {count} documents, {trained} to train on, and a step reads "
            f"{most}: give more documents, or --config.batch={max(trained // 2, 1)}"
        )


def _task_file(name: str, config: RunConfig) -> None:
    """Raises UserError if the task `name` of docjax reads a file or folder that is not
    there."""
    task = config.tasks[name]
    path = task.keywords.get("path") if task.fn.startswith("docjax.") else None
    if path and not path.startswith("ir-datasets:") and not Path(path).exists():
        field = f"tasks.{name}.path"
        raise UserError(f"{field} {path}: no such file; name it with --config.{field}")
