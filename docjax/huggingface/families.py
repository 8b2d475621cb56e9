"""One record per family of segment encoders: what other libraries call its parts.

A record says which of our classes reads a checkpoint, and which config, tensor names
and modules an export of that class has. A new family needs a record at the end of this
file, a PyTorch form in `docjax/export/torch_segment_encoders.py`, and its own names and
config mapping if BERT's do not fit.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn

from docjax.encoders.bigbird import BigBird
from docjax.encoders.longformer import Longformer
from docjax.encoders.modernbert import ModernBert
from docjax.encoders.t5 import T5 as T5Encoder
from docjax.encoders.token_encoder import DTYPES
from docjax.encoders.transformer import Transformer
from docjax.encoders.word_average import WordAverage
from docjax.errors import UserError
from docjax.huggingface import bigbird_config, configs, long_configs, t5_config
from docjax.huggingface import names as names_lib


@dataclasses.dataclass(frozen=True, eq=False)
class Family:
    """A kind of segment encoder, in docjax and in other libraries.

    Attributes:
      module: our class.
      names: the names of the tensors.
      sentence_module: the module of sentence-transformers that gives the same vectors;
        None if no stock module does.
      training_only: beginnings of parameter paths that only training reads; exports
        leave them out. A head that predicts masked tokens (`names.masked_lm`) is
        exported if the segment encoder has one.
      dtypes: the values of the keyword `dtype`. A class with a single dtype has no such
        keyword.
      fixed: keywords that tell this family from later families of the same class.
      architectures: model_type of config.json -> class of transformers. Exports write
        the first. Empty if transformers has no such model; the two functions are then
        None.
      auto_class: the class of transformers that reads an export; AutoModel takes T5
        for the whole model, with its decoder.
      model_keywords: what that class needs to leave out a pooler that docjax lacks.
      first_sees_all: whether transformers needs a `global_attention_mask` of 1 at the
        first token.
      alone: whether transformers gives our vectors to a segment alone, but not to a
        padded batch.
      to_keywords: config.json and the name of its file -> keywords of `module`.
      to_config: keywords of `module` -> config.json without type and class.
    """

    module: type[nn.Module]
    names: names_lib.Names
    sentence_module: str | None
    training_only: tuple[str, ...]
    dtypes: tuple[str, ...] = ("float32",)
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    architectures: Mapping[str, str] = dataclasses.field(default_factory=dict)
    auto_class: str = "AutoModel"
    model_keywords: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    first_sees_all: bool = False
    alone: bool = False
    to_keywords: Callable[[Mapping[str, Any], str], dict[str, Any]] | None = None
    to_config: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None

    @property
    def in_transformers(self) -> bool:
        """Whether transformers can read this family."""
        return bool(self.architectures)

    def holds(self, segment: nn.Module) -> bool:
        """Whether a segment encoder that fits no earlier family fits this one."""
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


BERT = Family(
    module=Transformer,
    names=names_lib.BERT,
    sentence_module="Transformer",
    training_only=("masked_lm/",),
    dtypes=DTYPES,
    fixed={"position_offset": 0},
    architectures={"bert": "BertModel"},
    model_keywords={"add_pooling_layer": False},
    to_keywords=configs.bert,
    to_config=configs.to_config,
)
ROBERTA = dataclasses.replace(
    BERT,
    names=names_lib.ROBERTA,
    fixed={},
    architectures={"roberta": "RobertaModel", "xlm-roberta": "XLMRobertaModel"},
    to_keywords=configs.roberta,
)
LONGFORMER = dataclasses.replace(
    ROBERTA,
    module=Longformer,
    names=names_lib.LONGFORMER,
    sentence_module=None,
    architectures={"longformer": "LongformerModel"},
    first_sees_all=True,
    to_keywords=long_configs.longformer,
    to_config=long_configs.longformer_config,
)
MODERNBERT = Family(
    module=ModernBert,
    names=names_lib.MODERNBERT,
    sentence_module="Transformer",
    training_only=("masked_lm/",),
    dtypes=DTYPES,
    architectures={"modernbert": "ModernBertModel"},
    to_keywords=long_configs.modernbert,
    to_config=long_configs.modernbert_config,
)
BIG_BIRD = dataclasses.replace(
    BERT,
    module=BigBird,
    sentence_module="BigBird",
    fixed={},
    architectures={"big_bird": "BigBirdModel"},
    alone=True,
    to_keywords=bigbird_config.big_bird,
    to_config=bigbird_config.big_bird_config,
)
T5 = Family(
    module=T5Encoder,
    names=names_lib.T5,
    sentence_module="Transformer",
    training_only=(),
    dtypes=DTYPES,
    architectures={"t5": "T5EncoderModel"},
    auto_class="T5EncoderModel",
    to_keywords=t5_config.t5,
    to_config=t5_config.t5_config,
)
WORD_AVERAGE = Family(
    module=WordAverage,
    names=names_lib.STATIC_EMBEDDING,
    sentence_module="StaticEmbedding",
    training_only=("targets",),
)
FAMILIES = (
    *(BERT, ROBERTA, LONGFORMER, MODERNBERT, BIG_BIRD, T5),
    WORD_AVERAGE,
)
MODEL_TYPES = {kind: family for family in FAMILIES for kind in family.architectures}


def family_of(segment: Any) -> Family:
    """The family of a segment encoder.

    Raises:
      UserError: for a module of no family.
    """
    for family in FAMILIES:
        if family.holds(segment):
            return family
    known = {family.module.__name__: None for family in FAMILIES}
    raise UserError(
        f"encoder.segment {type(segment).__name__} belongs to no family that docjax "
        f"knows; use one of {', '.join(known)}"
    )


def family_of_config(config: Mapping[str, Any], source: str) -> Family:
    """The family of a config.json; `source` names the file.

    Raises:
      UserError: for a model_type of no family.
    """
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in MODEL_TYPES:
        raise UserError(
            f"{source}: model_type {kind!r} is not supported; "
            f"supported are {', '.join(MODEL_TYPES)}"
        )
    return MODEL_TYPES[kind]
