"""Configs: dotted names and keyword arguments become functions and modules.

A part of a config is `dict(fn="docjax.objectives.infonce.infonce", temperature=1.0)`:
the dotted name of a function or class and its keyword arguments.
"""

import dataclasses
import functools
import importlib
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_collections

from docjax.errors import UserError
from docjax.storage import json_file


def plain(node: Any) -> Any:
    """A config node as nested dicts and lists of JSON values."""
    if isinstance(node, ml_collections.ConfigDict):
        node = node.to_dict()
    if isinstance(node, Mapping):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [plain(value) for value in node]
    return node


def resolve(name: Any, allow: Sequence[str] = ("docjax.",)) -> Callable[..., Any]:
    """The function or class called `name`.

    What a module imported from elsewhere is not its own: it is not found there.

    Raises:
      UserError: if `name` is not under one of the prefixes in `allow`, or its module
        has no such function; the message lists the functions there are.
    """
    if not isinstance(name, str) or not name.startswith(tuple(allow)):
        raise UserError(
            f"fn {name!r} is not under {', '.join(allow)}: only those are imported; "
            "allow another prefix by name if you trust it"
        )
    module_name, _, attribute = name.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UserError(f"fn {name!r}: {error}") from None
    found = getattr(module, attribute, None)
    home = f"{getattr(found, '__module__', None)}."
    own = home.startswith(tuple(allow)) and not attribute.startswith("_")
    if not callable(found) or not own:
        raise UserError(
            f"fn {name!r}: {module_name} has no {attribute!r}; "
            f"it has {', '.join(_public(module))}"
        )
    return found


def build(node: Any, allow: Sequence[str] = ("docjax.",)) -> Any:
    """Builds a config node: `{"fn": name, **keywords}` -> an instance or a partial.

    A class is called with its keywords; a function is bound to them, to be called
    with data later. Nodes inside are built first; anything without `fn` stays as it
    is, with lists as tuples.

    Raises:
      UserError: for an unknown name or keyword, the message lists the valid ones; for
        a class, also for a missing one.
    """
    node = plain(node)
    if isinstance(node, Mapping):
        built = {key: build(value, allow) for key, value in node.items()}
        if "fn" not in built:
            return built
        name = built.pop("fn")
        fn = resolve(name, allow)
        check_keywords(name, fn, built)
        return fn(**built) if inspect.isclass(fn) else functools.partial(fn, **built)
    if isinstance(node, list):
        return tuple(build(value, allow) for value in node)
    return node


def node(built: Any) -> Any:
    """The config node that `build` makes this function or module of."""
    if isinstance(built, functools.partial):
        keywords = {key: node(value) for key, value in built.keywords.items()}
        return {"fn": _name(built.func)} | keywords
    if dataclasses.is_dataclass(built) and not inspect.isclass(built):
        names = [field.name for field in dataclasses.fields(built) if field.init]
        given = [name for name in names if name not in ("parent", "name")]
        keywords = {name: node(getattr(built, name)) for name in given}
        return {"fn": _name(type(built))} | keywords
    if callable(built):
        return {"fn": _name(built)}
    return plain(built)


def check_keywords(name: str, fn: Callable[..., Any], keywords: Mapping) -> None:
    """Raises UserError if `fn` does not take `keywords`; lists those it takes.

    A class needs all keywords without default; a function gets the others later.
    """
    parameters = inspect.signature(fn).parameters
    valid = [p for p in parameters if p not in ("self", "parent", "name")]
    unknown = [key for key in keywords if key not in valid]
    if unknown:
        raise UserError(
            f"{name} has no keyword {', '.join(map(repr, unknown))}; "
            f"it has {', '.join(valid)}"
        )
    needed = [p for p in valid if parameters[p].default is inspect.Parameter.empty]
    missing = [key for key in needed if key not in keywords]
    if inspect.isclass(fn) and missing:
        raise UserError(f"{name} needs {', '.join(missing)}; it has {', '.join(valid)}")


def vary(
    config: Any,
    variant: str,
    *functions: Callable[[Any], None],
    **named: Callable[[Any], None],
) -> Any:
    """`config` after those of `functions` that `variant` lists, with commas between.

    A function goes by its own name, or by the one it is given under.

    Raises:
      UserError: if one is not there; the message lists them.
    """
    found = {function.__name__: function for function in functions} | named
    for name in filter(None, variant.split(",")):
        if name not in found:
            raise UserError(f"variant {name!r} is none of {', '.join(found)}")
        found[name](config)
    return config


def save(config: Any, path: Path) -> None:
    """Writes the fully resolved config as JSON."""
    json_file.write(path, plain(config))


def _name(fn: Any) -> str:
    return f"{fn.__module__}.{fn.__qualname__}"


def _public(module: Any) -> list[str]:
    return sorted(
        name
        for name, value in vars(module).items()
        if callable(value)
        and not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
    )


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
    module = _module(path)
    variant = variant or own
    config = module.get_config(variant) if variant else module.get_config()
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


def _module(path: Path) -> types.ModuleType:
    """The module in a config's file; it is not kept in `sys.modules`.

    Raises:
      UserError: if it cannot be read, or has no `get_config`.
    """
    module = types.ModuleType(f"{path.stem}_config")
    module.__file__ = str(path)
    try:
        code = compile(path.read_bytes(), path, "exec")
        exec(code, vars(module))  # noqa: S102  a config file is a program
    except UserError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"{path}: {type(error).__name__}: {reason}") from error
    if not callable(getattr(module, "get_config", None)):
        raise UserError(f"{path}: has no function get_config")
    return module
