"""Whether a value fits an annotation, and an annotation in the words of a message."""

import collections.abc
import inspect
import itertools
import types
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

LARGEST = 2**31 - 1  # the largest whole number: arrays hold 32 bits
SMALLEST = -LARGEST  # that parts from outside of docjax take; those of docjax take 0
HIGHEST = 3e38  # the largest number: float32 is infinite above it
JSON = (type(None), bool, int, float, str, tuple, list, dict)
LISTS = (tuple, list, collections.abc.Iterable, collections.abc.Collection, Sequence)
WORDS = {float: "a number", bool: "True or False", str: "a text", type(None): "None"}


def fits(value: Any, annotation: Any, least: int = 0) -> bool:
    """Whether a built value fits `annotation`.

    A whole number must be at least `least`, or n for `Annotated[int, n]`; a whole
    number also fits a float. NaN and infinities fit nothing. A list or tuple fits every
    kind of sequence; a text fits no sequence.
    """
    kind, inner = get_origin(annotation) or annotation, get_args(annotation)
    if kind in (Union, types.UnionType):
        return any(fits(value, choice, least) for choice in inner)
    if kind is Literal:
        return any(type(value) is type(item) and value == item for item in inner)
    if kind is Annotated:
        return fits(value, inner[0], inner[1])
    if kind is int:
        return type(value) is int and least <= value <= LARGEST
    if kind is float:
        return type(value) in (int, float) and abs(value) <= HIGHEST
    if kind in LISTS:
        return isinstance(value, (tuple, list)) and _items_fit(
            value, kind, inner, least
        )
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


def words(annotation: Any, least: int = 0) -> str:
    """An annotation, with `least` as for `fits`, in the words of an error message."""
    kind, inner = get_origin(annotation) or annotation, get_args(annotation)
    if kind in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(words(choice, least) for choice in inner))
    if kind is Literal:
        return " or ".join(map(repr, inner))
    if kind in (int, Annotated):
        least = inner[1] if inner else least
        return f"a whole number from {least} to 2**31 - 1"
    if kind in LISTS:
        items = [item for item in inner if item is not Ellipsis]
        return "a list" + (f", each {words(items[0], least)}" if items else "")
    if kind in WORDS:
        return WORDS[kind]
    if isinstance(kind, type) and issubclass(kind, JSON):
        return f"a {kind.__name__}"
    if isinstance(kind, type) and kind.__module__.startswith("flax."):
        return "a part, dict(fn=..., ...), that is a Flax module (flax.linen.Module)"
    return "a part, dict(fn=..., ...)"


def shown(value: Any) -> str:
    """A value in an error message, shortened to one line of 80 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _items_fit(value: Sequence, kind: type, inner: tuple, least: int) -> bool:
    """Whether the items of a list fit the annotation's `inner` types."""
    if kind is tuple and inner and inner[-1] is not Ellipsis:
        each = itertools.repeat(least)
        return len(value) == len(inner) and all(map(fits, value, inner, each))
    return not inner or all(fits(item, inner[0], least) for item in value)
