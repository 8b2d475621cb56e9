"""What a part lacks of the protocol that its place asks for, in the words of a message."""

import inspect
from collections.abc import Callable
from typing import Any, Protocol


def missing(part: Any, protocol: type) -> list[str]:
    """The attributes and methods of a protocol that a part does not have."""
    return [name for name in members(protocol) if not hasattr(part, name)]


def unfit(part: Any, protocol: type) -> str:
    """How a method of a part does not take what its protocol gives it, or ""."""
    for name, declared in members(protocol).items():
        if not inspect.isfunction(declared):
            continue
        given = list(inspect.signature(declared).parameters.values())[1:]  # not self
        if any(each.kind is each.VAR_POSITIONAL for each in given):
            continue  # the protocol leaves the arguments open, as *arguments
        wanted = [
            each.name
            for each in given
            if each.kind is not each.KEYWORD_ONLY and each.default is each.empty
        ]
        method = getattr(part, name)
        try:
            inspect.signature(method).bind(*[None] * len(wanted))
        except (TypeError, ValueError):
            return (
                f"{name} takes {signature_in_words(method)}, not ({', '.join(wanted)})"
            )
    return ""


def members(protocol: type) -> dict[str, Any]:
    """The public members of a protocol by name; None for an attribute without value.

    `__call__` counts as public.
    """
    found: dict[str, Any] = {}
    for cls in reversed(protocol.__mro__):
        if not getattr(cls, "_is_protocol", False) or cls is Protocol:
            continue
        own = dict.fromkeys(inspect.get_annotations(cls)) | vars(cls)
        found |= {
            name: value
            for name, value in own.items()
            if name == "__call__" or not name.startswith("_")
        }
    return found


def signature_in_words(function: Callable) -> str:
    """The arguments that a function still needs or takes by position: "(a, b)"."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions written in C may have none
        return "(unknown arguments)"
    names = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind is not parameter.VAR_KEYWORD
    ]
    return f"({', '.join(names)})"
