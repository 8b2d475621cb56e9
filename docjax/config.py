"""Loads configs and their variants: shipped configs and config files of a user.

A config is the ConfigDict that a function `get_config(variant="")` returns. Its parts
are explained in `docjax/parts/`, its fields in `docjax/run/fields.py`.
"""

import copy
import functools
import logging
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_collections

from docjax.errors import UserError

logger = logging.getLogger(__name__)

Variant = Callable[[Any], None]
ABSENT = "absent"  # in place of a value, where a field is not there


def vary(config: Any, variant: str, **groups: Sequence[Variant]) -> Any:
    """`config` after the functions that `variant` names, in the order typed.

    A variant is a function of a group, such as `size=(small, demo)`, and has the
    function's name. Two variants of one group exclude each other. A function may stand
    in several groups. A field that two variants set to different values is told in a
    line of the log, and the later variant decides.

    Args:
      config: what the functions change.
      variant: names of functions, separated by commas.
      groups: the functions by the name of what they choose.

    Raises:
      UserError: for an unknown name, which lists the names by group; for two names of
        one group; and for an error inside a function, which names it.
    """
    functions = {f.__name__: f for members in groups.values() for f in members}
    names = [name for name in variant.split(",") if name]
    for name in names:
        if name not in functions:
            raise UserError(f"variant {name!r} is none of {_listed(groups)}")
    for group, members in groups.items():
        group, known = group.replace("_", " "), {f.__name__ for f in members}
        first, *others = [name for name in names if name in known] or [""]
        if first in others:
            raise UserError(f"variant {first!r} is given twice: give it once")
        if others:
            raise UserError(
                f"variants {first!r} and {others[0]!r} both choose the {group}: give "
                "one of them"
            )
    _in_order([functions[name] for name in names], config)
    return config


def _listed(groups: Mapping[str, Sequence[Variant]]) -> str:
    """The names by group, each name in its first group."""
    seen: set[str] = set()
    listed = []
    for group, members in groups.items():
        names = [f.__name__ for f in members if f.__name__ not in seen]
        seen |= set(names)
        if names:
            listed.append(f"{group.replace('_', ' ')}: {', '.join(names)}")
    return "; ".join(listed)


def _in_order(chosen: Sequence[Variant], config: Any) -> None:
    """Runs the variants, and tells which fields each of them changes that an earlier
    variant had set."""
    start, values = copy.deepcopy(config), _values(config)
    changes: list[set[str]] = []
    for variant in chosen:
        before = values
        _run(variant, config)
        values = _values(config)
        changes.append(_different(before, values))
        for earlier, set_before in zip(chosen, changes[:-1]):
            set_before = set_before | _sets_again(start, variant, earlier)
            told = [
                f"{field} from {before.get(field, ABSENT)} to {values.get(field, ABSENT)}"
                for field in sorted(changes[-1] & set_before)
            ]
            if told:
                logger.warning(
                    "variant %r changes what %r set: %s",
                    *(variant.__name__, earlier.__name__, ", ".join(told)),
                )


def _run(variant: Variant, config: Any) -> None:
    """Raises UserError, which names the variant, for an error inside it."""
    try:
        variant(config)
    except Exception as error:
        reason = str(error) if isinstance(error, UserError) else _in_one_line(error)
        raise UserError(f"variant {variant.__name__!r}: {reason}") from error


def _sets_again(start: Any, first: Variant, then: Variant) -> set[str]:
    """The fields that `then` changes after `first`: it sets them, perhaps to the value
    that they have at the start."""
    config = copy.deepcopy(start)
    try:
        first(config)
        values = _values(config)
        then(config)
    except Exception:  # noqa: BLE001  they do not go together in this order
        return set()
    return _different(values, _values(config))


def _different(values: Mapping[str, str], others: Mapping[str, str]) -> set[str]:
    fields = values.keys() | others.keys()
    return {field for field in fields if values.get(field) != others.get(field)}


def _values(node: Any, path: str = "") -> dict[str, str]:
    """The values of a config by their path, as text."""
    if not isinstance(node, Mapping | ml_collections.ConfigDict) or not node:
        return {path: repr(node)}
    found: dict[str, str] = {}
    for name, value in node.items():
        found |= _values(value, f"{path}.{name}" if path else name)
    return found


def load(name: str | Path, variant: str = "") -> ml_collections.ConfigDict:
    """A shipped config, or the config of a Python file.

    `load("graph_roberta", variant="small")` and `load("graph_roberta:small")` both give
    the config of the flag `--config=graph_roberta:small`.

    Args:
      name: a shipped name, or the path of a file with `get_config(variant="")`.
      variant: names of the config's variants, separated by commas.

    Raises:
      UserError: for an unknown name or variant, and for a file that fails.
    """
    path, suffix = find(name)
    if variant and suffix:
        raise UserError(
            f"config {name} has two variants, {suffix!r} and {variant!r}: give one of "
            "them"
        )
    config = _called(path, variant or suffix)
    if not isinstance(config, ml_collections.ConfigDict):
        raise UserError(
            f"{path}: get_config returns a {type(config).__name__}, not a ConfigDict"
        )
    return config


def find(name: str | Path) -> tuple[Path, str]:
    """The file of a config, and the variant after a colon ("" without a colon).

    `name` is `NAME`, `configs/NAME.py` or the path of any Python file. An existing file
    takes precedence over a shipped config.

    Raises:
      UserError: if no such file or name exists; the message lists the names.
    """
    text, _, variant = str(name).partition(":")
    path, names = Path(text), shipped()
    if path.suffix == ".py" and path.is_file():
        return path, variant
    if path in (Path(path.stem), Path("configs", f"{path.stem}.py")):
        path = names.get(path.stem, path)
    if path not in names.values():
        raise UserError(
            f"config {text!r} is neither a Python file nor a shipped config: give the "
            f"path of a file, or one of {', '.join(names)}"
        )
    return path, variant


def base() -> types.ModuleType:
    """What the configs share, `configs/base.py`, as a module.

    `base().config(...)` gives every field of a run; `base().small` and the others are
    sizes for a variant to call.
    """
    return _loaded_once(_folder() / "base.py")


def shipped() -> dict[str, Path]:
    """The shipped config files by name, from the installed package or the checkout."""
    paths = sorted(_folder().glob("*.py"))
    return {path.stem: path for path in paths if path.stem != "base"}


def _folder() -> Path:
    installed = Path(__file__).with_name("configs")
    return installed if installed.is_dir() else Path(__file__).parents[1] / "configs"


def _called(path: Path, variant: str) -> Any:
    """The result of a config file's `get_config`. Raises UserError if the file cannot be
    read, fails, or has no `get_config`."""
    try:
        module = _module(path)
        if not callable(getattr(module, "get_config", None)):
            raise UserError(
                f"{path}: has no function get_config: define get_config(variant='')"
            )
        return module.get_config(variant) if variant else module.get_config()
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{path}: {_in_one_line(error)}") from error


@functools.cache
def _loaded_once(path: Path) -> types.ModuleType:
    return _module(path)


def _module(path: Path) -> types.ModuleType:
    """A Python file as a module, without an entry in `sys.modules`."""
    module = types.ModuleType(f"{path.stem}_config")
    module.__file__ = str(path)
    code = compile(path.read_bytes(), path, "exec")
    exec(code, vars(module))  # noqa: S102  a config file is a program
    return module


def said(error: Exception) -> str:
    """What an error says, in one line: its first, and the name that a ConfigDict has in
    place of an unknown one."""
    inner = error.args[0] if error.args else ""
    if isinstance(inner, Exception):
        return said(inner)
    text = inner if isinstance(error, KeyError) else error
    first, *others = str(text).strip().splitlines() or [""]
    question = [line for line in others if line.startswith("Did you mean")]
    return ". ".join([first, *question])


def _in_one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {said(error)}"
