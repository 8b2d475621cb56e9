"""Code from outside of docjax: the packages that a caller allows, and their versions.

A caller allows the parts of a package by the beginning of their dotted names:
`allow=("mylab.",)` in Python, `--allow=mylab.` on the command line.
"""

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from docjax.errors import UserError
from docjax.parts.annotations import shown

OURS = ("docjax.", "optax.")
LIBRARIES = {"docjax", "optax", "flax", "jax", "jaxlib", "numpy"}


def prefixes(allow: str | Sequence[str]) -> tuple[str, ...]:
    """The prefixes that a caller allows, each with a dot at its end. Raises UserError
    for a prefix that is no name, or whose package cannot be found or imported."""
    given = tuple(allow) if isinstance(allow, (list, tuple)) else (allow,)
    return tuple(dict.fromkeys(map(_prefix, given)))


def packages(names: Iterable[str]) -> tuple[dict[str, Any], ...]:
    """The package of each foreign name: prefix, distribution, version, sha256 of its code.

    Distribution and version are None for code that no installed distribution has.
    """
    tops = {f"{name.partition('.')[0]}." for name in names} - set(OURS)
    return tuple(_package(prefix) for prefix in sorted(tops))


def code_of(*parts: Any) -> str:
    """The sha256 of each foreign package that built parts, or the parts in them, come
    from; "" for docjax's own parts."""
    tops = set().union(*map(_tops, parts)) - LIBRARIES - sys.stdlib_module_names
    return " ".join(map(_digest, sorted(tops - {"__main__"})))


def changes(
    before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]
) -> list[str]:
    """What differs between the packages of a run's begin and those of now, in words."""
    earlier = {package["prefix"]: package for package in before}
    return [
        f"the code of {package['prefix'].rstrip('.')} ({_version(package)}) is not that "
        f"of the run's begin ({_version(earlier[package['prefix']])})"
        for package in now
        if package["prefix"] in earlier and package != earlier[package["prefix"]]
    ]


@contextlib.contextmanager
def errors_named(allow: Sequence[str], during: str) -> Iterator[None]:
    """Turns an error that foreign code raises into one line with its place.

    Raises:
      UserError: names the function, file and line that raised, and what docjax did
        `during` that time, such as "step 12".
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        frame = _foreign_frame(error, allow)
        if frame is None:
            raise
        reason = " ".join(str(error).split())
        raise UserError(
            f"{during}: {frame} raised {type(error).__name__}: {reason}"
        ) from error


def _prefix(text: Any) -> str:
    name = text[:-1] if isinstance(text, str) and text.endswith(".") else text
    if not isinstance(name, str) or not all(p.isidentifier() for p in name.split(".")):
        raise UserError(
            f"allow {shown(text)} is not the beginning of dotted names: give a package, "
            "such as mylab."
        )
    try:
        exists = name == "docjax" or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        exists = False
    except Exception as error:  # noqa: BLE001 a parent package may raise anything
        reason = " ".join(f"{type(error).__name__} {error}".split())
        parent = name.rpartition(".")[0]
        raise UserError(
            f"allow {text!r}: {parent} cannot be imported: {reason}"
        ) from None
    if not exists:
        raise UserError(
            f"allow {text!r}: there is no package {name!r}; install it, or name the "
            "folder that holds it in PYTHONPATH"
        )
    return f"{name}."


def _package(prefix: str) -> dict[str, Any]:
    top = prefix.rstrip(".")
    name = importlib.metadata.packages_distributions().get(top, [None])[0]
    return {
        "prefix": prefix,
        "distribution": name,
        "version": importlib.metadata.version(name) if name else None,
        "sha256": _digest(top),
    }


def _tops(part: Any) -> set[str]:
    """The packages of a built part's functions and classes."""
    if isinstance(part, (list, tuple)):
        return set().union(*map(_tops, part))
    fn = getattr(part, "func", part)  # of a function with its keywords
    module = (fn if hasattr(fn, "__qualname__") else type(fn)).__module__
    inner = list(getattr(part, "keywords", {}).values())
    if dataclasses.is_dataclass(part):
        inner += [getattr(part, field.name) for field in dataclasses.fields(part)]
    return _tops(inner) | {module.partition(".")[0]}


def _digest(top: str) -> str:
    """The sha256 of the Python files of a package, by name and content."""
    digest = hashlib.sha256()
    for name, path in sorted(_files(top)):
        digest.update(f"{name}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _files(top: str) -> list[tuple[str, Path]]:
    spec = importlib.util.find_spec(top)
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    if not folders:
        return [(top, Path(spec.origin))] if spec.has_location else []
    return [
        (str(path.relative_to(folder)), path)
        for folder in folders
        for path in folder.rglob("*.py")
    ]


def _version(package: dict[str, Any]) -> str:
    if package["distribution"] is None:
        return f"no distribution, sha256 {package['sha256'][:8]}"
    return f"{package['distribution']} {package['version']}, sha256 {package['sha256'][:8]}"


def _foreign_frame(error: BaseException, allow: Sequence[str]) -> str | None:
    """The last place in allowed foreign code that an error came through, or None."""
    foreign = tuple(prefix for prefix in allow if prefix not in OURS)
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        module = frame.f_globals.get("__name__", "")
        if foreign and f"{module}.".startswith(foreign):
            code = frame.f_code
            return f"{module}.{code.co_qualname} ({Path(code.co_filename).name}:{line})"
    return None
