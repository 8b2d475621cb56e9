"""`docjax evaluate`: any model on your own data, one task at a time.

`docjax evaluate --task NAME --help` says what a task reads and which options it has.
--prompt and --prompt-name change the words before documents; queries keep the model's
prompt "query". The command prints the metrics as one line of JSON.
"""

import argparse
import dataclasses
import inspect
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import docjax
from docjax.commands import options
from docjax.errors import UserError
from docjax.tasks import catalogue

HELP = "the score of a model on your own data"
EXAMPLE = "docjax evaluate runs/demo --task classification --data labelled.jsonl"
# Of an option, beside keywords of `add_argument`: its own name, the field of the task,
# and the function that makes the field's value of what was typed.
OURS = "name", "field", "value"
DATA = {  # what a task reads -> --data
    "labels": 'documents (docs/files.md) with "label" and "split" (train, test)',
    "texts": "documents (docs/files.md)",
    "pairs": "a table of split, source, target and label",
    "collection": "a folder with the files of BEIR, MS MARCO or TREC "
    "(docjax.retrieval.beir names them) or ir-datasets:NAME",
    "nothing": "this task reads no data",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        help="a run, a Hugging Face folder or name; for a task that ranks also FILE.trec",
    )
    parser.add_argument(
        "--task",
        required=True,
        metavar="NAME",
        help=f"{', '.join(catalogue.names())}, or the dotted name of a task class",
    )
    parser.add_argument("--data", metavar="PATH", help="what the task reads")
    options.prompt(parser)
    options.add(parser, "allow", "truncate-dim", "segments", *options.READING)


def named_options(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Adds the options of the task in `words`. Raises UserError for an unknown task."""
    asked = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    asked.add_argument("--task", nargs="?")
    options.add(asked, "allow")
    flags, _ = asked.parse_known_args(words)
    if flags.task is None:
        return
    cls = catalogue.find(flags.task, flags.allow)
    about = inspect.cleandoc(cls.__doc__ or "").partition("\n\nAttributes:")[0]
    parser.description = f"{about} --data: {DATA[cls.reads]}."
    group = parser.add_argument_group(f"options of {flags.task}")
    for name, keywords in _options(cls).items():
        ours = {"default": None, "help": keywords["help"].replace("%", "%%")}
        others = {k: v for k, v in keywords.items() if k not in OURS}
        try:
            group.add_argument(f"--{name}", **others | ours)
        except argparse.ArgumentError:
            raise UserError(
                f"{flags.task} has an option --{name}, and so has the command: give "
                "the field another name, option(..., name=...)"
            ) from None


def refuse(flags: argparse.Namespace, unknown: Sequence[str]) -> None:
    """Raises UserError for an option of other tasks."""
    for word in unknown:
        name = word.removeprefix("--").partition("=")[0]
        tasks = [
            task
            for task in catalogue.names()
            if word.startswith("--") and name in _options(catalogue.find(task))
        ]
        if tasks:
            raise UserError(
                f"--{name} is an option of {' and '.join(tasks)}; leave it out for "
                f"{flags.task}"
            )


def run(flags: argparse.Namespace) -> None:
    from docjax.model.evaluate import build, evaluate_model, name_of
    from docjax.model.task_data import write
    from docjax.types import TaskOfFiles

    cls = catalogue.find(flags.task, flags.allow)
    reading = options.reading(flags)
    if cls.reads in ("collection", "nothing"):
        others = {k: v for k, v in reading.items() if k != "max_bad_fraction"}
        why = "a collection's columns have their usual names (docs/files.md)"
        options.check_not_given(
            others, why if flags.data else f"{flags.task} reads none"
        )
    if not cls.prompted and (flags.prompt, flags.prompt_name) != (None, None):
        raise UserError(f"{flags.task} reads texts without a prompt: leave it out")
    output = getattr(flags, "output", None)
    if output:
        options.check_folder(output)
    keywords = _keywords(cls, flags)
    task = build(
        flags.task, flags.data, flags.allow, flags.max_bad_fraction, **keywords
    )
    file = Path(flags.model)
    if isinstance(task, TaskOfFiles) and (file.is_file() or file.suffix == task.suffix):
        _check_file(flags)
        name = name_of(task)
        keep = partial(write, Path(output, name)) if output else None
        found = task.of_file(file, keep)
        print(json.dumps({f"eval/{name}/{key}": value for key, value in found.items()}))
        return
    model = docjax.load(
        flags.model,
        truncate_dim=flags.truncate_dim,
        segments=flags.segments,
        allow=flags.allow,
    )
    metrics = evaluate_model(
        model.with_prompt(flags.prompt, flags.prompt_name),
        flags.task,
        flags.data,
        allow=flags.allow,
        reading=reading,
        documents=getattr(flags, "documents", None),
        output=output and Path(output),
        **keywords,
    )
    print(json.dumps(metrics))


def _options(cls: type[Any]) -> dict[str, dict[str, Any]]:
    """The options of a task by name: keywords of `add_argument`, and OURS."""
    found: dict[str, dict[str, Any]] = {}
    for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
        if keywords := field.metadata.get("option"):
            name = keywords.get("name", field.name.replace("_", "-"))
            found[name] = {"field": field.name, **keywords}
    if cls.reads == "pairs":
        help = "the file of the documents (the only .jsonl beside --data)"
        found["documents"] = {"help": help}
    if cls.keeps:
        found["output"] = {"metavar": "DIR", "help": f"a folder for {cls.keeps}"}
    return found


def _keywords(cls: type[Any], flags: argparse.Namespace) -> dict[str, Any]:
    """The keywords of the task, from the options that were given."""
    given = {}
    for name, keywords in _options(cls).items():
        typed = getattr(flags, name.replace("-", "_"), None)
        if typed is not None and "field" in keywords:
            value = keywords["value"](typed) if "value" in keywords else typed
            given[keywords["field"]] = value
    return given


def _check_file(flags: argparse.Namespace) -> None:
    """Raises UserError for a flag that does nothing to a file of results."""
    names = ("truncate_dim", "segments", "prompt", "prompt_name", "max_bad_fraction")
    for name in names:
        if getattr(flags, name) not in (None, 0.0):
            raise UserError(
                f"--{name.replace('_', '-')} does nothing to {flags.model}, which is a "
                "run: leave it out"
            )
