"""RoBERTa (Liu et al. 2019): `docjax/encoders/transformer.py` in other libraries.

BERT with another head for masked tokens, and positions that begin after the id of the
padding token.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from docjax.huggingface import configs
from docjax.huggingface.families import bert
from docjax.huggingface.names import weights_and_biases


def to_keywords(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of Transformer for a config.json; raises as that of BERT."""
    keywords = bert.to_keywords(config, source)
    if config.get("pad_token_id") is None:
        return keywords | {"position_offset": 2}
    padding = configs.size(config, "pad_token_id", source, least=0)
    return keywords | {"position_offset": padding + 1}


NAMES = dataclasses.replace(
    bert.NAMES,
    masked_lm=weights_and_biases(
        {"dense": "dense", "norm": "layer_norm"}, "masked_lm/", "lm_head."
    )
    | {"masked_lm/bias": "lm_head.bias"},
    prefix="roberta.",
    decoder="lm_head.decoder.weight",
)
FAMILY = dataclasses.replace(
    bert.FAMILY,
    names=NAMES,
    fixed={},
    architectures={"roberta": "RobertaModel", "xlm-roberta": "XLMRobertaModel"},
    to_keywords=to_keywords,
)
