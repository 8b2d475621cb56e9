"""What `docjax.train` is given in Python: documents or a config, and where the run goes."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from ml_collections import ConfigDict

from docjax import config as config_lib
from docjax.data import tables
from docjax.data.sources import kept
from docjax.errors import UserError
from docjax.model.inputs import as_corpus, check_path, described, items_of, shown
from docjax.parts import named
from docjax.run import fields
from docjax.types import Document

WITH_INIT, WITHOUT = "graph_roberta:frozen", "graph_roberta:words"  # recipes
DOCUMENTS = "documents"  # the folder of a run with documents from Python


class Columns(TypedDict, total=False):
    """Documents as columns of equal length: lists, arrays, or columns of a table."""

    texts: Any
    labels: Any
    titles: Any


class Given(NamedTuple):
    """A config whose source has the documents, and the run directory."""

    config: ConfigDict
    workdir: Path


def given(first: Any, workdir: Any, config: Any, init: Any, columns: Columns) -> Given:
    """The run that the arguments of `docjax.train` describe; writes its documents.

    Raises:
      UserError: for arguments that do not go together, for a bad document, and for a
        run that was begun with other documents.
    """
    if isinstance(first, ConfigDict | str | Path):
        _check_file(first)
        if config is not None:
            raise UserError("two configs are given: give the first argument or config=")
        first, config = None, first
    if workdir is not None and not isinstance(workdir, str | Path):
        raise UserError(
            f"workdir is {described(workdir)}, not the name of a folder: give labels and "
            "titles by name, docjax.train(texts=..., labels=..., titles=...)"
        )
    if workdir is not None:
        check_path("workdir", workdir)
    documents = _documents(first, columns)
    if documents is None and config is None:
        raise UserError(
            "nothing to train on: give texts=..., a table, a list of documents, or a "
            "config"
        )
    if config is None:
        config = WITHOUT if init is None else WITH_INIT
    made = _loaded(config, init)
    name = "config" if isinstance(config, ConfigDict) else _name(config)
    text = "" if documents is None else kept.lines(documents)
    if workdir is None:
        named_only = documents is None and name != "config"
        workdir = Path("runs", name if named_only else f"{name}-{_digest(made, text)}")
        print(f'workdir="{workdir}"', file=sys.stderr, flush=True)
    if documents is not None:
        _keep(text, made, Path(workdir))
    return Given(made, Path(workdir))


def _documents(first: Any, columns: Columns) -> list[Document] | None:
    """The documents of the first argument or of the columns; None without any."""
    given: dict[str, Any] = {
        name: value for name, value in columns.items() if value is not None
    }
    unknown = given.keys() - Columns.__annotations__.keys()
    if unknown:
        raise UserError(
            f"docjax.train has no argument {min(unknown)}: it has texts, labels, titles, "
            "config, workdir, init, allow and callbacks; fields of a config are set in it"
        )
    if first is not None and given:
        raise UserError(
            f"documents are given twice, first and as {min(given)}=: a table or a list "
            "of dicts has its own labels and titles"
        )
    if first is not None:
        return as_corpus(first)
    if not given:
        return None
    if "texts" not in given:
        raise UserError(f"{min(given)} are given without texts: give texts=[...]")
    return as_corpus(_records(given))


def _records(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of columns. Raises UserError for columns of different lengths."""
    listed = {}
    for name, values in given.items():
        listed[name] = items_of(values, name)
    count = len(listed["texts"])
    for name, values in listed.items():
        if len(values) != count:
            raise UserError(
                f"{count} texts and {len(values)} {name}: give one for each text, or "
                "None where there is none"
            )
        for number, value in enumerate(values):
            if name == "texts" and not isinstance(tables.plain(value), str):
                raise UserError(f"text {number} is {described(value)}: give a text")
    rows = zip(*listed.values(), strict=True)
    keys = [name.removesuffix("s") for name in listed]
    return [tables.record(dict(zip(keys, row, strict=True))) for row in rows]


def _check_file(first: Any) -> None:
    """Raises UserError for the name of a file of documents in place of a config."""
    if isinstance(first, ConfigDict):
        return
    check_path("the config", first)
    path = Path(first)
    if path.is_file() and path.suffix != ".py":
        raise UserError(
            f"{shown(str(first))} is a file of documents, not a config: config = "
            f'docjax.config.load("{WITHOUT}"); config.source.path = {str(first)!r}; '
            "docjax.train(config)"
        )


def _loaded(config: Any, init: Any) -> ConfigDict:
    """A config of the caller's own, with `init`."""
    if isinstance(config, str | Path):
        _check_file(config)
        config = config_lib.load(config)
    if not isinstance(config, ConfigDict):
        raise UserError(
            f"config is {described(config)}: give a name such as {WITHOUT!r}, the path "
            "of a config file, or what docjax.config.load returns"
        )
    config = config.copy_and_resolve_references()
    if init is not None:
        check_path("init", init)
        with config.unlocked(), config.ignore_type():
            config.init = str(init)
    return config


def _name(config: str | Path) -> str:
    """NAME[_VARIANT], as the command names run directories."""
    path, variant = config_lib.find(config)
    return "_".join([path.stem, *filter(None, variant.split(","))])


def _digest(config: ConfigDict, text: str) -> str:
    """A short name of a config and of documents."""
    facts = json.dumps(named.plain(config), sort_keys=True, default=str)
    return hashlib.sha256(f"{facts}\n{text}".encode()).hexdigest()[:8]


def _keep(text: str, config: ConfigDict, workdir: Path) -> None:
    """Writes the documents into the run directory and makes them the config's source.
    Raises UserError for a run of other documents, and if it cannot be written."""
    folder = (workdir / DOCUMENTS).resolve()
    if not kept.holds(folder, text):
        if fields.begun(workdir):
            raise UserError(
                f"{workdir} was begun with other documents: give another workdir, or "
                "leave workdir out"
            )
        try:
            kept.write(folder, text)
        except OSError as error:
            raise UserError(f"{workdir}: cannot be written ({error})") from None
    with config.unlocked(), config.ignore_type():
        config.source = dict(fn="docjax.data.sources.kept.kept", path=str(folder))
