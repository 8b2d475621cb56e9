"""The parts of a config: which parts a field takes, and how a part is built.

A field takes parts of docjax from its `HOMES`, and parts of the packages that the caller
allows. A part is checked against the protocol of its field
(`docjax/types.py`) as soon as it is built.
"""

import dataclasses
import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_origin

import jraph
import optax

from docjax.data.tokenizer import Tokenizer
from docjax.encoders.document import DocumentEncoder
from docjax.errors import UserError
from docjax.parts import named
from docjax.parts.annotations import shown
from docjax.parts.homes import HOMES
from docjax.parts.protocols import missing, signature_in_words, unfit
from docjax.tasks import catalogue
from docjax.types import (
    ExampleMaker,
    Keep,
    ObjectiveOfTokens,
    ObjectiveOfWords,
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

    A function takes `arguments` and returns a `result`; without a `result`, the field
    takes only instances. `facts` are what a part may say about itself, and what holds if
    it does not. `defaults` is a class to inherit, for a part that lacks something.
    """

    noun: str  # in messages: "an objective"
    classes: tuple[type, ...] = ()
    arguments: tuple[str, ...] = ()
    result: type | None = None
    facts: Mapping[str, Any] = types.MappingProxyType({})
    defaults: str = ""


PLACES = {
    "source": Place("a source", result=Iterator),
    "holdout": Place("a holdout", arguments=("documents",), result=Iterator),
    "tokenizer.train": Place(
        "a trainer of tokenizers", arguments=("texts",), result=Tokenizer
    ),
    "units": Place(
        "a cut into units",
        (UnitCutter,),
        # How the units cut a text, in words for a report; "": at the limit of the
        # encoder, or at sections. None: a plain encoder would not read such units.
        facts={"cut_in_words": None},
    ),
    "examples": Place(
        "a maker of examples",
        (ExampleMaker,),
        facts={
            # The label of an example says if its two documents are similar.
            "labelled_pairs": False,
            # The links or queries of the documents themselves are compared.
            "own_relations": False,
            # An example is one document and relations play no part, so that the steps
            # may read a sample of the documents.
            "independent": False,
        },
    ),
    "views": Place("a maker of views", (ViewMaker,)),
    "segments": Place("a cut into segments", (SegmentCutter,)),
    "graph": Place(
        "a graph", arguments=("segments", "sections", "edges"), result=jraph.GraphsTuple
    ),
    "encoder": Place("an encoder", (DocumentEncoder,)),
    "objective": Place(
        "an objective",
        (
            ObjectiveOfWords,
            ObjectiveOfTokens,
            ObjectiveWithMemory,
            ObjectiveWithTeacher,
        ),
        ("vectors", "targets"),
        tuple,
    ),
    "optimizer": Place(
        "an optimizer", (RowOptimizer,), ("steps",), optax.GradientTransformation
    ),
    "keep": Place("a rule what to keep", (Keep,)),
    "tasks": Place("a task", (Task,), defaults="docjax.tasks.task.TaskDefaults"),
}
DECAYS = "docjax.encoders.weight_decay.decays"
MASKED = ("weight_decay", "weight_decay_rate")  # keywords that optax's masks are for
LOSS = PLACES["objective"]._replace(classes=())  # inside of another loss


@dataclasses.dataclass(frozen=True)
class Part:
    """The dotted name of a function or class, its keywords as JSON values, and what
    they make.

    Attributes:
      built: the instance of the class, or the function bound to its keywords.
      path, allow: the field of the config, and the prefixes that were allowed.
    """

    fn: str
    keywords: Mapping[str, Any]
    built: Any = dataclasses.field(compare=False, repr=False)
    path: str = dataclasses.field(compare=False, repr=False)
    allow: tuple[str, ...] = dataclasses.field(compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        return {"fn": self.fn} | named.plain(self.keywords)

    def says(self, name: str) -> Any:
        """A fact that the part says about itself, or what holds if it does not."""
        return getattr(self.built, name, PLACES[_field(self.path)].facts[name])

    def with_keywords(self, **keywords: Any) -> "Part":
        """The part with these keywords changed, built anew."""
        return read_part(self.to_json() | keywords, self.path, self.allow)

    def as_built(self, built: Any, **keywords: Any) -> "Part":
        """The part with these keywords changed, where `built` is what they make."""
        keywords = _frozen(self.keywords | keywords)
        return dataclasses.replace(self, keywords=keywords, built=built)


def read_part(node: Any, path: str, allow: Sequence[str] = ()) -> Part:
    """The part in the field `path` of a config.

    allow: prefixes of names outside of docjax that the caller allows.

    Raises:
      UserError: for a part that cannot be built, or that the field does not take.
    """
    place, homes = PLACES[_field(path)], HOMES[_field(path)]
    if not isinstance(node, Mapping) or "fn" not in node:
        raise UserError(
            f"{path} {shown(node)} is not a part: give dict(fn='{homes[0]}...', ...)"
        )
    node = named.plain(node)
    if path == "optimizer" and str(node["fn"]).startswith("optax."):
        built = _around_optax(node, (*homes, *allow), path)
    else:
        built = named.build(node, (*homes, *allow), path)
    _check_place(built, place, node["fn"], path)
    if isinstance(built, DocumentEncoder):
        _check_pattern(built.frozen)
    inner = getattr(built, "contrastive", None)
    if inner is not None:
        _check_place(inner, LOSS, node["contrastive"]["fn"], f"{path}.contrastive")
    keywords = {name: value for name, value in node.items() if name != "fn"}
    return Part(node["fn"], _frozen(keywords), built, path, tuple(allow))


def _field(path: str) -> str:
    """The field of a config that a path lies in: "tasks" for "tasks.clustering"."""
    return path if path in PLACES else path.partition(".")[0]


def _around_optax(node: Mapping, allow: Sequence[str], path: str) -> Callable:
    """An optimizer of optax with docjax's clip and its choice of what decays.

    `clip` is docjax's keyword, all others are optax's. If the optimizer decays weights,
    docjax says which (`docjax.encoders.weight_decay`), unless the config does.
    """
    inner = {name: value for name, value in node.items() if name != "clip"}
    masked = _with_masks(inner, allow, path)
    fn, keywords = named.arguments(masked, (*allow, DECAYS.rpartition(".")[0]), path)
    around = {"fn": "docjax.training.optimizer.around"}
    clip = {"clip": node["clip"]} if "clip" in node else {}
    made = named.called(fn, keywords, f"{path} {node['fn']}")
    bound = named.build(around | clip, ("docjax.training.",), path)
    return functools.partial(bound, optimizer=made)


def _with_masks(node: Any, allow: Sequence[str], path: str) -> Any:
    """The node of an optimizer, and of those inside of it, with masks of what decays.
    Raises UserError for weight decay that no mask keeps from biases and layer norms."""
    if not isinstance(node, Mapping) or "fn" not in node:
        return node
    node = {key: _with_masks(x, allow, f"{path}.{key}") for key, x in node.items()}
    takes = named.parameters_of(named.resolve(node["fn"], allow, path))
    decay = [key for key in takes if key.endswith(("weight_decay", *MASKED))]
    masks = [key for key in ("mask", "weight_decay_mask") if decay and key in takes]
    for key in decay:
        value = node.get(key, takes[key].default)
        if value and not (masks and key in MASKED):
            raise UserError(
                f"{path}.{key} {shown(value)}: {node['fn']} has no mask that keeps this "
                f"decay from biases and layer norms; set {path}.{key} to 0.0, or take "
                "an optimizer with a mask, such as optax.adamw"
            )
    return {key: {"fn": DECAYS} for key in masks} | node


def _check_place(built: Any, place: Place, fn: str, path: str) -> None:
    """Raises UserError if the field `path` does not take `built`, which `fn` names."""
    label = f"{path} {fn}"
    is_function = isinstance(built, functools.partial)
    kinds = [] if is_function else [c for c in place.classes if isinstance(built, c)]
    if kinds:
        if fault := unfit(built, kinds[0]):
            raise UserError(f"{label}: {fault}, as {place.noun} does")
        if Task in kinds and (fault := catalogue.problem(type(built))):
            raise UserError(f"{label} is no task: {fault}")
        return
    if place.result is None or not callable(built):
        lacks = [] if is_function else missing(built, place.classes[0])
        what = f"has no {', '.join(lacks)}" if lacks else "is none"
        inherit = f"; inherit {place.defaults}" if lacks and place.defaults else ""
        raise UserError(f"{label} {what}: {place.noun} {_asked(place)}{inherit}")
    signature = inspect.signature(built)
    try:
        signature.bind(*[None] * len(place.arguments))
    except TypeError:
        needed = f"({', '.join(place.arguments)})"
        raise UserError(
            f"{label} takes {signature_in_words(built)}, {place.noun} takes {needed}: "
            f"{_mend_of(signature, place, path, is_function)}"
        ) from None
    result = signature.return_annotation
    if fn.startswith("docjax.") and (get_origin(result) or result) is not place.result:
        raise UserError(f"{label} gives another result: {place.noun} {_asked(place)}")


def _mend_of(
    signature: inspect.Signature, place: Place, path: str, is_function: bool
) -> str:
    """What mends a function whose arguments do not fit its place."""
    names = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.default is parameter.empty and name not in place.arguments
    ]
    if names and is_function:
        return f"set {', '.join(f'--config.{path}.{name}' for name in names)}"
    return f"name another function in {path}.fn"


def _asked(place: Place) -> str:
    """The parts that a place takes, as words for a message."""
    kinds = [f"{cls.__module__}.{cls.__name__}" for cls in place.classes]
    wanted = f"is as {' or '.join(kinds)} says" if kinds else ""
    if place.result is None:
        return wanted
    function = (
        f"is a function of ({', '.join(place.arguments)}) that gives "
        f"{place.result.__name__}"
    )
    return f"{function}, or {wanted}" if wanted else function


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
