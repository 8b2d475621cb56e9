"""Finds tasks by name: the modules of this folder say which tasks there are.

A class that sets `command` is a task of `docjax evaluate`. The modules are read as
text, because help is instant: no task is imported before somebody asks for it.
"""

import functools
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from docjax.errors import UserError

FOLDER = Path(__file__).parent
LINES = re.compile(r'^class (\w+)|^    command = "(\w+)"', re.MULTILINE)


@functools.cache
def names() -> dict[str, str]:
    """The dotted name of each task class, by its name in `docjax evaluate --task`."""
    found = {
        command: f"{__package__}.{file.stem}.{name}"
        for file in FOLDER.glob("*.py")
        for name, command in _commands(file.read_text("utf-8"))
    }
    return dict(sorted(found.items()))


def dotted(name: str, allow: str | Sequence[str] = ()) -> str:
    """The dotted name of a task class: `name` is one, or a name of `names`. Raises
    UserError for an unknown name, and for a class that `allow` does not cover."""
    if name in names():
        return names()[name]
    if "." not in name:
        raise UserError(
            f"--task {name!r} is no task: give {', '.join(names())}, or the dotted name "
            "of a task class"
        )
    from docjax.parts import outside

    package = name.partition(".")[0]
    if not name.startswith(("docjax.", *outside.prefixes(allow))):
        raise UserError(
            f"--task {name}: code outside of docjax is not imported unless you allow "
            f"it: add --allow={package}. if you trust the package {package}"
        )
    return name


def find(name: str, allow: str | Sequence[str] = ()) -> type[Any]:
    """The task class that `dotted` names. Raises UserError as `dotted`, and for a class
    that is no task; the line says why."""
    from docjax.parts import named, outside

    path = dotted(name, allow)
    try:
        found = named.resolve(path, ("docjax.", *outside.prefixes(allow)))
    except UserError as error:
        raise UserError(f"--task: {error}") from None
    if not inspect.isclass(found):
        raise UserError(f"--task {name} is a function: give a class")
    if fault := problem(found):
        raise UserError(f"--task {name} is no task: {fault}")
    return found


def _commands(source: str) -> Iterator[tuple[str, str]]:
    """The classes of a module that set `command`, each with its value."""
    cls = ""
    for begun, command in LINES.findall(source):
        cls = begun or cls
        if command:
            yield cls, command


def problem(cls: type[Any]) -> str:
    """What a class lacks to be a task, in words; "" if it lacks nothing."""
    from docjax.tasks.task import TaskDefaults
    from docjax.types import Reads

    known = {name for base in cls.__mro__ for name in vars(base)}
    facts = [name for name in vars(TaskDefaults) if not name.startswith("_")]
    if missing := [name for name in facts if name not in known]:
        defaults = f"{TaskDefaults.__module__}.{TaskDefaults.__name__}"
        return f"it lacks {', '.join(missing)}: inherit {defaults}"
    if cls.reads not in (kinds := get_args(Reads)):
        return f"it reads {cls.reads!r}, which is not one of {', '.join(kinds)}"
    for name in ("check", "__call__"):
        if name not in known:
            return f"it lacks {name}(self, data, part)"
        method = inspect.signature(getattr(cls, name))
        try:
            method.bind("self", "data", "part")
        except TypeError:
            return f"{name} takes {method}, a task has {name}(self, data, part)"
    return ""
