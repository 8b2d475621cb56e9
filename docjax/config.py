"""Configs: the shipped ones and those of a user's files.

A config is a ConfigDict that a function `get_config(variant="")` gives. What its parts
are is in `docjax/parts/`; the fields of a whole config are in `docjax/run/fields.py`.
"""

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_collections

from docjax.errors import UserError


def vary(
    config: Any,
    variant: str,
    *functions: Callable[[Any], None],
    **named: Callable[[Any], None],
) -> Any:
    """`config` after the functions that `variant` lists, with commas between.

    A function goes by its own name, or by the keyword under which it is given.

    Raises:
      UserError: for a name without function; the message lists the names.
    """
    variants = {function.__name__: function for function in functions} | named
    for name in filter(None, variant.split(",")):
        if name not in variants:
            raise UserError(f"variant {name!r} is none of {', '.join(variants)}")
        variants[name](config)
    return config


def load(name: str | Path, variant: str = "") -> ml_collections.ConfigDict:
    """A shipped config, or the one that a file of Python gives.

    `load("graph_roberta", variant="small")` is what the command takes as
    `--config=graph_roberta:small`; both spellings work here.

    Args:
      name: a shipped name, or the path of a file with `get_config(variant="")`.
      variant: the config's own variants, with commas between.

    Raises:
      UserError: for an unknown name or variant, and for a file that fails.
    """
    path, own = find(name)
    if variant and own:
        raise UserError(
            f"config {name} has the variant {own!r}, and {variant!r} beside"
        )
    config = _called(path, variant or own)
    if not isinstance(config, ml_collections.ConfigDict):
        raise UserError(
            f"{path}: get_config gives a {type(config).__name__}, not a ConfigDict"
        )
    return config


def find(name: str | Path) -> tuple[Path, str]:
    """The file of a config, and the variant behind a colon ("" without).

    `NAME`, `configs/NAME.py` and the path of any Python file; a file that exists goes
    before a shipped config.

    Raises:
      UserError: if there is no such file and no such name; lists the names.
    """
    text, _, variant = str(name).partition(":")
    path, names = Path(text), shipped()
    if path.suffix == ".py" and path.is_file():
        return path, variant
    if path in (Path(path.stem), Path("configs", f"{path.stem}.py")):
        path = names.get(path.stem, path)
    if path not in names.values():
        raise UserError(
            f"config {text!r} is no Python file and no shipped config: give the path of "
            f"a file, or one of {', '.join(names)}"
        )
    return path, variant


def shipped() -> dict[str, Path]:
    """The files of `configs/` by name: in the installed package, or beside it."""
    installed = Path(__file__).with_name("configs")
    checkout = Path(__file__).parents[1] / "configs"
    folder = installed if installed.is_dir() else checkout
    return {path.stem: path for path in sorted(folder.glob("*.py"))}


def _called(path: Path, variant: str) -> Any:
    """What `get_config` of a config's file gives; no module is left in `sys.modules`.

    Raises:
      UserError: if the file cannot be read, fails, or has no `get_config`.
    """
    module = types.ModuleType(f"{path.stem}_config")
    module.__file__ = str(path)
    try:
        code = compile(path.read_bytes(), path, "exec")
        exec(code, vars(module))  # noqa: S102  a config file is a program
        if not callable(getattr(module, "get_config", None)):
            raise UserError(f"{path}: has no function get_config")
        return module.get_config(variant) if variant else module.get_config()
    except UserError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"{path}: {type(error).__name__}: {reason}") from error
