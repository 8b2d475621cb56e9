"""The flag --config and those of its fields: `--config.batch=64`.

ml_collections makes the flags. Here a field that is None takes any value (behind "=",
not behind a space), a field of one value or a part takes None, and a part takes keywords
that the config does not name; `docjax.run.fields.resolve` refuses what does not fit.
"""

import ast
import contextlib
import json
import re
from pathlib import Path
from typing import Any

from absl import flags
from ml_collections import ConfigDict, FieldReference, config_flags

from docjax import config as config_lib
from docjax.errors import UserError

ERRORS = (AttributeError, IndexError, KeyError, TypeError, ValueError, flags.Error)
FLAG = re.compile(r"--?config(=|\.source\b)")  # of a config or of its documents
NO_PART = re.compile(r'Override (\S+) can not be applied because field "(\w+)" is None')


def define(values: flags.FlagValues) -> None:
    """Defines --config in `values`; its fields become flags when it is parsed."""
    for kind, parser in PARSERS.items():
        config_flags.register_flag_parser_for_type(kind, _OrNone(parser))
    names = ", ".join(config_lib.shipped())
    config_flags.DEFINE_config_file(
        "config",
        None,
        f"{names}, or the path of a config file; with :VARIANT.",
        flag_values=values,
        lock_config=False,
        accept_new_attributes=True,
    )
    values["config"].parser = _ConfigParser()


def demo_without_source(argv: list[str]) -> tuple[list[str], str]:
    """The flags of a config's demo, if they name a config alone and no documents.

    Also what to tell the user; "" if the flags stay as they are. A shipped config has a
    demo if it has a variant `demo`, and needs documents if there is no corpus.jsonl.
    """
    argv = _joined(argv)
    given = [each.lstrip("-") for each in argv if FLAG.match(each)]
    if len(given) != 1 or ":" in given[0]:
        return argv, ""
    name = given[0].partition("=")[2]
    try:
        file = config_lib.find(name)[0].resolve()
        is_shipped = file in map(Path.resolve, config_lib.shipped().values())
        path = config_lib.load(name).source.get("path")
        config_lib.load(f"{name}:demo")
    except UserError:  # reported as the flag is parsed
        return argv, ""
    if not is_shipped or not path or Path(path).exists():
        return argv, ""
    told = (
        f"no documents are given, so this is {name}:demo, the system at the size of two "
        "cores on the docstrings of installed Python packages; the published run: "
        f"python -m docjax.main --config={name} --config.source.path=FILE"
    )
    return [f"{each}:demo" if FLAG.match(each) else each for each in argv], told


def _joined(argv: list[str]) -> list[str]:
    """The flags with `--config=NAME` in place of `--config NAME`."""
    joined: list[str] = []
    for argument in argv:
        if joined and joined[-1] in ("-config", "--config"):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def as_user_error(error: Exception) -> UserError:
    """One of ERRORS in one line."""
    if isinstance(error, (KeyError, AttributeError, IndexError)):
        return UserError(f"the config has no field {config_lib.said(error)}")
    if none := NO_PART.match(str(error)):
        names = none[1].split(".")
        last = max(i for i, each in enumerate(names[:-1]) if each == none[2])
        part = ".".join(names[: last + 1])
        return UserError(
            f"config.{part} is None, so there is no {none[1]} to set: give the whole "
            f"""field, --config.{part}='{{"fn": ..., ...}}'"""
        )
    lines = [line for line in str(error).splitlines() if line.strip()]
    text = " ".join(dict.fromkeys([lines[0], lines[-1]]))
    return UserError(re.sub(r" \?$", "?", text))  # absl writes "NAME ?"


class _OrNone(flags.ArgumentParser):
    """Reads None, or what another parser reads. A default, which is not text, stays."""

    def __init__(self, other: flags.ArgumentParser):
        self._other = other

    def parse(self, argument: Any) -> Any:
        if not isinstance(argument, str):
            return argument
        return None if argument == "None" else self._other.parse(argument)


class _Part(flags.ArgumentParser):
    """Reads a part or another dict."""

    def parse(self, argument: str) -> ConfigDict:
        for read in (ast.literal_eval, json.loads):
            with contextlib.suppress(SyntaxError, ValueError):
                if isinstance(part := read(argument), dict):
                    return ConfigDict(part)
        raise ValueError(
            f"""{argument} is not a dict, such as {{"fn": ..., ...}}, or None"""
        )


PARSERS = {
    int: flags.IntegerParser(),
    float: flags.FloatParser(),
    bool: flags.BooleanParser(),
    str: flags.ArgumentParser(),
    ConfigDict: _Part(),
}


class _ConfigParser(flags.ArgumentParser):
    """Reads --config, a shipped name or a path."""

    def parse(self, argument: str) -> ConfigDict:
        config = config_lib.load(argument)
        _open(config)
        return config


def _open(config: ConfigDict) -> None:
    """Lets a flag set the fields that are None."""
    for name, value in config.items():
        if isinstance(value, ConfigDict):
            _open(value)
        elif config.get_type(name) is type(None):
            with config.unlocked(), config.ignore_type():
                config[name] = FieldReference(None, field_type=object)
