"""Whether a value fits an annotation, and an annotation in the words of a message."""

import collections.abc
import inspect
import types
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

LARGEST = 2**31 - 1  # the largest whole number: arrays hold 32 bits
HIGHEST = 3e38  # the largest number: float32 is infinite above it
JSON = (type(None), bool, int, float, str, tuple, list, dict)
LISTS = (tuple, list, collections.abc.Iterable, collections.abc.Collection, Sequence)
WORDS = {float: "a number", bool: "True or False", str: "a text", type(None): "None"}


def fits(value: Any, annotation: Any) -> bool:
    """Whether a built value fits `annotation`.

    A whole number must be at least 0, or at least n for `Annotated[int, n]`; a whole
    number also fits a float. NaN and infinities fit nothing. A list or tuple fits every
    kind of sequence; a text fits no sequence.
    """
    kind, inner = get_origin(annotation) or annotation, get_args(annotation)
    if kind in (Union, types.UnionType):
        return any(fits(value, choice) for choice in inner)
    if kind is Literal:
        return any(type(value) is type(item) and value == item for item in inner)
    if kind is Annotated:
        return fits(value, inner[0]) and value >= inner[1]
    if kind is int:
        return type(value) is int and 0 <= value <= LARGEST
    if kind is float:
        return type(value) in (int, float) and abs(value) <= HIGHEST
    if kind in LISTS:
        return isinstance(value, (tuple, list)) and _items_fit(value, kind, inner)
    if kind is collections.abc.Mapping and inner:
        is_mapping = isinstance(value, collections.abc.Mapping)
        return is_mapping and all(fits(item, inner[1]) for item in value.values())
    if kind is collections.abc.Callable:
        return callable(value)
    if getattr(kind, "_is_protocol", False):
        return not isinstance(value, JSON)
    if kind in (Any, inspect.Parameter.empty) or not isinstance(kind, type):
        return True
    return isinstance(value, kind)


def words(annotation: Any) -> str:
    """An annotation in the words of an error message."""
    kind, inner = get_origin(annotation) or annotation, get_args(annotation)
    if kind in (Union, types.UnionType):
        return " or ".join(map(words, inner))
    if kind is Literal:
        return " or ".join(map(repr, inner))
    if kind in (int, Annotated):
        least = inner[1] if inner else 0
        return f"a whole number from {least} to 2**31 - 1"
    if kind in LISTS:
        items = [item for item in inner if item is not Ellipsis]
        return "a list" + (f", each {words(items[0])}" if items else "")
    if kind in WORDS:
        return WORDS[kind]
    if isinstance(kind, type) and issubclass(kind, JSON):
        return f"a {kind.__name__}"
    return "a part, dict(fn=..., ...)"


def shown(value: Any) -> str:
    """A value in an error message, shortened to one line of 80 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _items_fit(value: Sequence, kind: type, inner: tuple) -> bool:
    """Whether the items of a list fit the annotation's `inner` types."""
    if kind is tuple and inner and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(map(fits, value, inner))
    return not inner or all(fits(item, inner[0]) for item in value)
