"""Which values fit an annotation, against a table written by hand."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol

import flax.linen as nn
import pytest
from jaxtyping import Array, Float

from docjax.encoders.pooling import Mean
from docjax.parts.annotations import fits, shown, words

NAN, INFINITE = float("nan"), float("inf")


class Reads(Protocol):
    def __call__(self, text: str) -> str: ...


@pytest.mark.parametrize(
    "annotation, good, bad",
    [
        (int, [0, 3, 2**31 - 1], [True, -1, 2**31, 1.0, "1", None, NAN]),
        (Annotated[int, 1], [1, 3], [0, -1, True, 1.0, "1"]),
        (float, [0, 3, -1, -0.5, 1e9], [True, "a", None, NAN, INFINITE, 10**400]),
        (bool, [True, False], [0, 1, "True", None]),
        (str, ["", "a"], [0, None, ["a"], b"a"]),
        (int | None, [None, 1], [True, "1", 1.5]),
        (Annotated[int, 1] | None, [None, 1], [0, True]),
        (str | Sequence[str], ["a", ("a", "b"), []], [1, (1,), None]),
        (Collection[str], [("a",), ["a"], ()], ["a", ("a", 1), {"a": 1}]),
        (Iterable[float], [(1, 2.5)], [(True,), 1.0]),
        (tuple[int, ...], [(), (1, 2)], [(1, "a"), (-1,), 1]),
        (tuple[int, str], [(1, "a"), [1, "a"]], [(1,), (1, "a", 2), ("a", 1)]),
        (Literal["a", 1], ["a", 1], ["b", True, 1.0]),
        (Mapping[str, int], [{"a": 1}], [1, [("a", 1)]]),
        (Callable[[str], str] | None, [None, str.lower], ["lower", 1, {}]),
        (nn.Module, [Mean()], [{}, None, str.lower]),
        (Reads, [str.lower, Mean()], [None, 1, "a", {}, ()]),
        (Float[Array, "b d"] | None, [None], [1.0, (1.0,), "a"]),
        (Any, [None, 1, "a"], []),
        ("a name", [None, 1, "a"], []),
    ],
)
def test_values_fit_their_annotation_and_others_do_not(annotation, good, bad):
    assert [value for value in good if not fits(value, annotation)] == []
    assert [value for value in bad if fits(value, annotation)] == []
    assert words(annotation)


@pytest.mark.parametrize(
    "annotation, text",
    [
        (float, "a number"),
        (Annotated[int, 1] | None, "a whole number from 1 to 2**31 - 1 or None"),
        (tuple[str, ...], "a list, each a text"),
        (Literal["dot", "cosine"], "'dot' or 'cosine'"),
        (
            nn.Module | None,
            "a part, dict(fn=..., ...), that is a Flax module (flax.linen.Module) or None",
        ),
        (Callable | Reads, "a part, dict(fn=..., ...)"),
    ],
)
def test_a_message_says_what_an_annotation_asks_for(annotation, text):
    assert words(annotation) == text


def test_a_value_is_shown_in_one_short_line():
    assert shown("a\nb") == "'a\\nb'"
    assert len(shown({"key": "value " * 100})) == 80
