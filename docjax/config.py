"""Configs: dotted names and keyword arguments become functions and modules.

A part of a config is `dict(fn="docjax.objectives.infonce.infonce", temperature=1.0)`:
the dotted name of a function or class and its keyword arguments.
"""

import dataclasses
import functools
import importlib
import inspect
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


load = json_file.read


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
