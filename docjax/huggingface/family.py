"""What other libraries call the parts of a segment encoder: a record for each family.

A record says which of our classes reads a checkpoint, and which config, tensor names
and modules an export of that class has. Each module of `docjax/huggingface/families/`
has the record of a family as FAMILY, with its names and config mapping.
"""

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn

from docjax.errors import UserError
from docjax.huggingface import families as records
from docjax.huggingface.names import Names


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """A kind of segment encoder, in docjax and in other libraries."""

    module: type[nn.Module]  # our class
    names: Names  # of the tensors
    # The class of `docjax/export/torch_segment_encoders.py` that gives the same vectors
    # in an exported folder, and the stock module of sentence-transformers, or None.
    exported_as: str = "Transformer"
    sentence_module: str | None = "Transformer"
    # Beginnings of the parameter paths that only training reads. Exports have the head
    # that predicts masked tokens (`names.masked_lm`) if the encoder has one.
    training_only: tuple[str, ...] = ("masked_lm/",)
    # Keywords that tell this family from others of its class. An encoder is of the
    # family with the most keywords that hold.
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    # model_type of config.json -> class of transformers. Exports write the first.
    # Empty if transformers has no such model; the two functions are then None.
    architectures: Mapping[str, str] = dataclasses.field(default_factory=dict)
    auto_class: str = "AutoModel"  # the class of transformers that reads an export
    # What that class needs to leave out a pooler that docjax lacks.
    model_keywords: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    takes_positions: bool = True  # that class takes `position_ids`
    first_sees_all: bool = (
        False  # it needs a `global_attention_mask` of the first token
    )
    # Our keywords -> the tokens above which transformers gives our vectors to a segment
    # alone, but not to a padded batch; None: it always does.
    alone_above: Callable[[Mapping[str, Any]], int] | None = None
    # config.json and the name of its file -> keywords of `module`.
    to_keywords: Callable[[Mapping[str, Any], str], dict[str, Any]] | None = None
    # Keywords of `module` -> config.json without type and class.
    to_config: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None

    @property
    def in_transformers(self) -> bool:
        """Whether transformers can read this family."""
        return bool(self.architectures)

    def may_hold(self, segment: Any) -> bool:
        """Whether a segment encoder has the class and the fixed keywords."""
        return type(segment) is self.module and all(
            getattr(segment, name) == value for name, value in self.fixed.items()
        )

    def table(self, segment: nn.Module) -> dict[str, str]:
        """Parameter path of a segment encoder of this family -> name of the tensor."""
        return self.names.table(segment.layers if self.names.layer else 0)

    def exported(self, segment: nn.Module) -> dict[str, str]:
        """As `table`, in an exported file: with the head for masked tokens, if any."""
        table = self.table(segment)
        if not segment.masked_lm:
            return table
        encoder = {path: self.names.prefix + name for path, name in table.items()}
        return encoder | self.names.masked_lm

    def config(self, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """The config.json of a transformers model with these keywords."""
        kind, architecture = next(iter(self.architectures.items()))
        if keywords.get("masked_lm"):
            architecture = f"{architecture.removesuffix('Model')}ForMaskedLM"
        header = {"model_type": kind, "architectures": [architecture]}
        return header | self.to_config(keywords)

    def in_torch(self, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """How the class `exported_as` calls transformers' model, as JSON values."""
        if not self.in_transformers:
            return {}
        return {
            "auto_class": self.auto_class,
            "model_keywords": dict(self.model_keywords),
            "takes_positions": self.takes_positions,
            "first_sees_all": self.first_sees_all,
            "alone_above": self.alone_above and self.alone_above(keywords),
        }


@functools.cache
def families() -> dict[str, Family]:
    """The record of each family, by the name of its file."""
    names = sorted(module.name for module in pkgutil.iter_modules(records.__path__))
    modules = {name: f"{records.__name__}.{name}" for name in names}
    return {name: importlib.import_module(m).FAMILY for name, m in modules.items()}


def by_model_type() -> dict[str, Family]:
    """The families that transformers has, by the model_type of config.json."""
    return {kind: f for f in families().values() for kind in f.architectures}


def decided() -> set[str]:
    """The keywords of segment encoders that weights decide, not a config."""
    return {
        name
        for family in families().values()
        for name in family.module.__dataclass_fields__
        if name not in ("parent", "name", *family.module.chosen)
    }


def family_of(segment: Any) -> Family:
    """The family of a segment encoder. Raises UserError for a module of no family."""
    fitting = [family for family in families().values() if family.may_hold(segment)]
    if not fitting:
        known = {family.module.__name__ for family in families().values()}
        raise UserError(
            f"encoder.segment {type(segment).__name__} belongs to no family that docjax "
            f"knows; use one of {', '.join(sorted(known))}"
        )
    return max(fitting, key=lambda family: len(family.fixed))


def family_of_config(config: Mapping[str, Any], source: str) -> Family:
    """The family of a config.json; `source` names the file. Raises UserError for a
    model_type of no family."""
    kind, known = config.get("model_type"), by_model_type()
    if not isinstance(kind, str) or kind not in known:
        raise UserError(
            f"{source}: model_type {kind!r} is not supported; "
            f"supported are {', '.join(sorted(known))}"
        )
    return known[kind]
