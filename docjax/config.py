"""Loads configs: shipped configs and config files of a user.

A config is the ConfigDict that a function `get_config(variant="")` returns. Its parts
are explained in `docjax/parts/`, its fields in `docjax/run/fields.py`.
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
    """`config` after the functions that `variant` names, separated by commas.

    The name of a function is its Python name or its keyword in the call of `vary`. The
    functions run in the order of the call, whatever the order of the names.

    Raises:
      UserError: for an unknown name; the message lists the names.
    """
    variants = {function.__name__: function for function in functions} | named
    names = [name for name in variant.split(",") if name]
    for name in names:
        if name not in variants:
            raise UserError(f"variant {name!r} is not one of {', '.join(variants)}")
    for name in variants:
        if name in names:
            variants[name](config)
    return config


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


def shipped() -> dict[str, Path]:
    """The shipped config files by name, from the installed package or the checkout."""
    installed = Path(__file__).with_name("configs")
    checkout = Path(__file__).parents[1] / "configs"
    folder = installed if installed.is_dir() else checkout
    return {path.stem: path for path in sorted(folder.glob("*.py"))}


def _called(path: Path, variant: str) -> Any:
    """The result of a config file's `get_config`, without an entry in `sys.modules`.

    Raises:
      UserError: if the file cannot be read, fails, or has no `get_config`.
    """
    module = types.ModuleType(f"{path.stem}_config")
    module.__file__ = str(path)
    try:
        code = compile(path.read_bytes(), path, "exec")
        exec(code, vars(module))  # noqa: S102  a config file is a program
        if not callable(getattr(module, "get_config", None)):
            raise UserError(
                f"{path}: has no function get_config: define get_config(variant='')"
            )
        return module.get_config(variant) if variant else module.get_config()
    except UserError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"{path}: {type(error).__name__}: {reason}") from error
