"""Parts of a config: dotted names and keyword arguments become functions and modules.

A part is `dict(fn="docjax.objectives.infonce.infonce", temperature=1.0)`: the dotted
name of a function or class and its keyword arguments. `docjax/run/places.py` says which
parts fit which field of a config, and `outside.py` which names a caller may allow.
"""

import dataclasses
import difflib
import functools
import importlib
import importlib.machinery
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_collections

from docjax.errors import UserError
from docjax.parts.annotations import JSON, SMALLEST, fits, shown, words

FACTORIES = ("optax.",)  # functions that are called with their keywords, as classes are
MISTAKES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def plain(node: Any) -> Any:
    """A config node as nested dicts and lists of JSON values."""
    if isinstance(node, ml_collections.ConfigDict):
        node = node.to_dict()
    if isinstance(node, Mapping):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [plain(value) for value in node]
    return node


def resolve(
    name: Any, allow: Sequence[str] = ("docjax.",), path: str = ""
) -> Callable[..., Any]:
    """The function or class called `name`.

    `resolve` accepts functions and classes that the module defines, not its imports.
    `path` is the field of the config that holds the name, for messages.

    Raises:
      UserError: if `name` is not under one of the prefixes in `allow`, or its module
        has no such function; the message lists the functions of the module.
    """
    field = _join(path, "fn")
    if not isinstance(name, str) or not name.startswith(tuple(allow)):
        raise UserError(
            f"{field} {shown(name)} is not under {', '.join(allow)}: {_mend(name)}"
        )
    module_name, _, attribute = name.rpartition(".")
    module = _imported(module_name, f"{field} {name!r}")
    value = getattr(module, attribute, None)
    if value is None and _is_module(module, attribute):
        value = _imported(name, f"{field} {name!r}")
    if inspect.ismodule(value):
        has = _public(value) or "no function"
        raise UserError(f"{field} {name!r} is a module; it has {has}")
    home = f"{getattr(value, '__module__', None)}."
    allowed = home.startswith(tuple(allow)) and not attribute.startswith("_")
    if not callable(value) or not allowed:
        raise UserError(
            f"{field} {name!r}: {module_name} has no {attribute!r}; "
            f"it has {_public(module) or _alike(module, attribute)}"
        )
    return value


def build(node: Any, allow: Sequence[str] = ("docjax.",), path: str = "") -> Any:
    """Builds a config node: `{"fn": name, **keywords}` -> an instance or a partial.

    `build` calls a class, or a function under FACTORIES, with its keywords. Another
    function becomes a partial; the remaining arguments arrive at call time. A node
    without `fn` stays a dict, and lists become tuples. Messages name the field `path`.

    Raises:
      UserError: for an unknown name or keyword, a value that does not fit the
        annotation of its keyword, or keywords that a class rejects.
    """
    node = plain(node)
    if isinstance(node, list):
        items = enumerate(node)
        return tuple(build(value, allow, f"{path}[{i}]") for i, value in items)
    if not isinstance(node, Mapping):
        return node
    if "fn" not in node:
        return _keywords(node, allow, path)
    fn, keywords = arguments(node, allow, path)
    if inspect.isclass(fn) or node["fn"].startswith(FACTORIES):
        return called(fn, keywords, path or node["fn"])
    return functools.partial(fn, **keywords)


def arguments(
    node: Mapping, allow: Sequence[str], path: str = ""
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function or class of a plain node with `fn`, and its built keywords. Raises
    UserError as `build`, before anything is called."""
    keywords = _keywords(node, allow, path)
    fn = resolve(node["fn"], allow, path)
    name = f"{path}: {node['fn']}" if path else node["fn"]
    check_keywords(name, fn, keywords)
    _check_values(fn, node, keywords, path or name)
    if node["fn"].startswith(FACTORIES):
        keywords = {key: _with_numbers(value) for key, value in keywords.items()}
    return fn, keywords


def _with_numbers(value: Any) -> Any:
    """A dict by the numbers that JSON has as texts, such as the steps of a schedule."""
    if not isinstance(value, dict) or not all(key.isdecimal() for key in value):
        return value
    return {int(key): item for key, item in value.items()}


def called(fn: Callable[..., Any], keywords: Mapping, path: str) -> Any:
    """What a class or a factory makes. Raises UserError for keywords that it rejects."""
    try:
        return fn(**keywords)
    except UserError:
        raise
    except MISTAKES as error:
        raise UserError(f"{path}: {_line(error)}") from None


def names(node: Any) -> set[str]:
    """The dotted names of a config node and of all nodes inside of it."""
    if isinstance(node, Mapping):
        own = {node["fn"]} if isinstance(node.get("fn"), str) else set()
        return own.union(*map(names, node.values()))
    if isinstance(node, (list, tuple)):
        return set().union(*map(names, node))
    return set()


def dotted(fn: Any) -> str:
    """The name under which `resolve` finds a function or class."""
    return f"{fn.__module__}.{fn.__qualname__}"


def node(built: Any, name: Callable[[Any], str] = dotted) -> Any:
    """The config node from which `build` makes this function or module.

    `name` gives another name to each function and class than `build` asks for.
    """
    if isinstance(built, functools.partial):
        keywords = {key: node(value, name) for key, value in built.keywords.items()}
        return {"fn": name(built.func)} | keywords
    if dataclasses.is_dataclass(built) and not inspect.isclass(built):
        fields = [field.name for field in dataclasses.fields(built) if field.init]
        keys = [key for key in fields if key not in ("parent", "name")]
        keywords = {key: node(getattr(built, key), name) for key in keys}
        return {"fn": name(type(built))} | keywords
    if callable(built):
        return {"fn": name(built)}
    return plain(built)


def check_keywords(name: str, fn: Callable[..., Any], keywords: Mapping) -> None:
    """Raises UserError if `fn` does not take `keywords`; lists the valid keywords.

    A class needs every keyword that has no default. The missing arguments of a function
    arrive at call time.
    """
    parameters = parameters_of(fn)
    unknown = [key for key in keywords if key not in parameters]
    if unknown and not _takes_any(fn):
        raise UserError(
            f"{name} has no keyword {', '.join(map(repr, unknown))}; "
            f"it has {', '.join(parameters) or 'none'}"
        )
    needed = [key for key, p in parameters.items() if p.default is p.empty]
    missing = [key for key in needed if key not in keywords]
    if inspect.isclass(fn) and missing:
        raise UserError(
            f"{name} needs {', '.join(missing)}; it has {', '.join(parameters)}"
        )


def _imported(name: str, field: str) -> types.ModuleType:
    """The module `name`, imported. Raises UserError for a hidden module such as
    `__main__`, a module that does not exist, or one whose import fails."""
    parts = name.split(".")
    if not all(part.isidentifier() and not part.startswith("_") for part in parts):
        raise UserError(f"{field}: there is no module {name!r}")
    try:
        return importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 a module may raise anything
        raise UserError(f"{field}: {name} cannot be imported: {_line(error)}") from None


def _keywords(node: Mapping, allow: Sequence[str], path: str) -> dict[str, Any]:
    """The built values of a node, without its `fn`."""
    return {
        key: build(value, allow, _join(path, key))
        for key, value in node.items()
        if key != "fn"
    }


def _mend(name: Any) -> str:
    """How a name that no prefix allows can be allowed."""
    package = name.partition(".")[0] if isinstance(name, str) else ""
    if package == "docjax" or not package.isidentifier():
        return "give the dotted name of a part under these prefixes"
    return (
        "only names under these prefixes are imported; if you trust its code, allow "
        f"it with --allow={package}. (in Python allow=({package + '.'!r},))"
    )


def _is_module(package: types.ModuleType, name: str) -> bool:
    """Whether a package has a module of this name, imported or not."""
    paths = list(getattr(package, "__path__", ()))
    find = importlib.machinery.PathFinder.find_spec
    return bool(name) and find(f"{package.__name__}.{name}", paths) is not None


def parameters_of(fn: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of `fn` that a config may set, by name."""
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    of_flax = ("parent", "name") if inspect.isclass(fn) else ()
    return {
        name: parameter
        for name, parameter in _signature(fn).items()
        if parameter.kind in kinds and name not in ("self", *of_flax)
    }


def _takes_any(fn: Callable[..., Any]) -> bool:
    """Whether a function takes keywords of any name, as **keywords."""
    return any(each.kind is each.VAR_KEYWORD for each in _signature(fn).values())


def _signature(fn: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(fn).parameters
    except (TypeError, ValueError):  # classes written in C may have no signature
        return {}


def _check_values(
    fn: Callable[..., Any], node: Mapping, keywords: Mapping, path: str
) -> None:
    """Raises UserError for a keyword that does not fit the annotation in `fn`. Whole
    numbers may be below 0 outside of docjax."""
    parameters = parameters_of(fn)
    least = 0 if node["fn"].startswith("docjax.") else SMALLEST
    for key, value in keywords.items():
        parameter = parameters.get(key)  # None: one of **keywords
        if parameter is None or fits(value, parameter.annotation, least):
            continue
        default = parameter.default
        hint = f": the default is {default!r}" if isinstance(default, JSON) else ""
        expected = words(parameter.annotation, least)
        raise UserError(f"{path}.{key} {shown(node[key])} is not {expected}{hint}")


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _public(module: Any) -> str:
    names = sorted(
        name
        for name, value in vars(module).items()
        if callable(value)
        and not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
    )
    return ", ".join(names)


def _alike(module: Any, attribute: str) -> str:
    """The names of a package, which it has from its modules, that are like another."""
    names = [name for name in dir(module) if not name.startswith("_")]
    alike = difflib.get_close_matches(attribute, names, 5, 0.5)
    return f"names such as {', '.join(alike)}" if alike else "no function"


def _line(error: Exception) -> str:
    """The first line of an error's text; some kinds of error add their name."""
    text = next(iter(str(error).strip().splitlines()), "")
    if text and isinstance(error, (ImportError, TypeError, ValueError)):
        return text
    return f"{type(error).__name__} {text}".strip()
