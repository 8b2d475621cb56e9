"""The parts of a config: which parts a field takes, and how a part is built.

A field takes only parts of docjax, from the folders and modules in `PLACES`.
"""

import dataclasses
import functools
import inspect
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_origin

import jraph
import optax

from docjax.data.tokenizer import Tokenizer
from docjax.encoders.document import DocumentEncoder
from docjax.errors import UserError
from docjax.objectives.masked_lm import MaskedLM
from docjax.objectives.negative_sampling import NegativeSampling
from docjax.parts import named
from docjax.parts.annotations import shown
from docjax.types import (
    ExampleMaker,
    ObjectiveWithMemory,
    ObjectiveWithTeacher,
    RowOptimizer,
    SegmentCutter,
    Task,
    UnitCutter,
    ViewMaker,
)


class Place(NamedTuple):
    """What a field takes: instances of `classes`, or functions.

    A function takes `arguments` values and returns a `result`; without a `result`, the
    field takes only instances.
    """

    homes: tuple[str, ...]  # how the dotted names begin
    classes: tuple[type, ...] = ()
    arguments: int = 0
    result: type | None = None


PLACES = {
    "source": Place(("docjax.data.sources.",), (), 0, Iterator),
    "holdout": Place(("docjax.data.splits.",), (), 1, Iterator),
    "tokenizer.train": Place(
        ("docjax.data.tokenizer.", "docjax.data.word_tokenizer."), (), 1, Tokenizer
    ),
    "units": Place(("docjax.data.units.",), (UnitCutter,)),
    "examples": Place(
        ("docjax.data.examples.", "docjax.retrieval.judged_queries."), (ExampleMaker,)
    ),
    "views": Place(("docjax.views.",), (ViewMaker,)),
    "segments": Place(("docjax.data.segments.",), (SegmentCutter,)),
    "graph": Place(("docjax.data.graphs.",), (), 3, jraph.GraphsTuple),
    "encoder": Place(("docjax.encoders.",), (DocumentEncoder,)),
    "objective": Place(
        ("docjax.objectives.",),
        (NegativeSampling, MaskedLM, ObjectiveWithMemory, ObjectiveWithTeacher),
        2,
        tuple,
    ),
    "optimizer": Place(
        ("docjax.training.optimizer.", "docjax.training.rows."),
        (RowOptimizer,),
        1,
        optax.GradientTransformation,
    ),
    "tasks": Place(("docjax.tasks.",), (Task,)),
}


LOSS = PLACES["objective"]._replace(classes=())  # inside of another loss


@dataclasses.dataclass(frozen=True)
class Part:
    """The dotted name of a function or class, and its keywords as JSON values."""

    fn: str
    keywords: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"fn": self.fn} | named.plain(self.keywords)

    def build(self) -> Any:
        """The instance of the class, or the function bound to its keywords."""
        return named.build(self.to_json())

    def with_keywords(self, **keywords: Any) -> "Part":
        """The part with these keywords changed."""
        return dataclasses.replace(self, keywords=_frozen(self.keywords | keywords))


def read_part(node: Any, path: str) -> Part:
    """The part in the field `path` of a config.

    Raises:
      UserError: for a part that cannot be built, or that the field does not take.
    """
    place = PLACES[path if path in PLACES else path.partition(".")[0]]
    if not isinstance(node, Mapping) or "fn" not in node:
        raise UserError(
            f"{path} {shown(node)} is not a part: "
            f"give dict(fn='{place.homes[0]}...', ...)"
        )
    built = named.build(node, place.homes, path)
    _check_place(built, place, f"{path}.fn {node['fn']!r}", path)
    if isinstance(built, DocumentEncoder):
        _check_pattern(built.frozen)
    if isinstance(built, NegativeSampling | MaskedLM) and built.contrastive is not None:
        named_loss = f"{path}.contrastive.fn {node['contrastive']['fn']!r}"
        _check_place(built.contrastive, LOSS, named_loss, f"{path}.contrastive")
    keywords = {name: value for name, value in node.items() if name != "fn"}
    return Part(node["fn"], _frozen(keywords))


def _check_place(built: Any, place: Place, label: str, path: str) -> None:
    """Raises UserError if the field `path` does not take `built`."""
    is_function = isinstance(built, functools.partial)
    if not is_function and isinstance(built, place.classes):
        return
    if not is_function or place.result is None:
        raise UserError(f"{label} does not fit: {path} takes {_asked(place)}")
    signature = inspect.signature(built)
    try:
        signature.bind(*[None] * place.arguments)
    except TypeError as error:
        raise UserError(f"{label}: {error}; set it with --config.{path}") from None
    result = signature.return_annotation
    if (get_origin(result) or result) not in (place.result, signature.empty):
        raise UserError(f"{label} does not fit: {path} takes {_asked(place)}")


def _asked(place: Place) -> str:
    """The parts that a place takes, as words for a message."""
    kinds = [f"the class {cls.__name__}" for cls in place.classes]
    if place.result is not None:
        kinds.append(f"a function that gives {place.result.__name__}")
    return f"{' or '.join(kinds)}, under {' or '.join(place.homes)}"


def _check_pattern(frozen: Any) -> None:
    """Raises UserError if `frozen` is not a regular expression."""
    try:
        re.compile(frozen if isinstance(frozen, str) else "")
    except re.error as error:
        raise UserError(
            f"encoder.frozen {frozen!r} is not a regular expression on the paths of "
            f"parameters: {error}; 'segment/' freezes the segment encoder, '' nothing"
        ) from None


def _frozen(node: Any) -> Any:
    """The JSON values, in mappings and tuples that cannot change."""
    if isinstance(node, Mapping):
        return types.MappingProxyType({key: _frozen(x) for key, x in node.items()})
    return tuple(map(_frozen, node)) if isinstance(node, (list, tuple)) else node
