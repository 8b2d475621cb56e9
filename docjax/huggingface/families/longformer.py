"""Longformer (Beltagy et al. 2020): `docjax/encoders/longformer.py` in other libraries."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from docjax.encoders.longformer import Longformer
from docjax.errors import UserError
from docjax.huggingface.families import bert, roberta
from docjax.huggingface.names import weights_and_biases


def to_keywords(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of Longformer for a config.json. Raises UserError for a value
    that it does not support; `source` names the file."""
    windows = config.get("attention_window", 512)
    listed = windows if isinstance(windows, list) else [windows]
    if not listed or any(type(w) is not int or w < 2 or w % 2 for w in listed):
        raise UserError(
            f"{source}: attention_window {windows!r} must be an even number from 2, or "
            "a list of such numbers, one for each layer"
        )
    keywords = roberta.to_keywords(config, source)
    if len(listed) not in (1, keywords["layers"]):
        raise UserError(
            f"{source}: attention_window has {len(listed)} numbers, but there are "
            f"{keywords['layers']} layers"
        )
    window = listed[0] if len(set(listed)) == 1 else tuple(listed)
    return keywords | {"window": window}


def to_config(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json of a Longformer with these keywords."""
    window = keywords["window"]
    if not isinstance(window, int):
        window = list(window)
    config = bert.to_config(keywords) | {"attention_window": window}
    del config["position_embedding_type"]  # transformers' Longformer has no such field
    return config


NAMES = dataclasses.replace(
    roberta.NAMES,
    layer=dict(roberta.NAMES.layer)
    | weights_and_biases(
        {name: f"{name}_global" for name in ("query", "key", "value")},
        "layer_{i}/attention/first/",
        "encoder.layer.{i}.attention.self.",
    ),
    prefix="longformer.",
)
FAMILY = dataclasses.replace(
    roberta.FAMILY,
    module=Longformer,
    names=NAMES,
    sentence_module=None,  # which gives transformers no global_attention_mask
    architectures={"longformer": "LongformerModel"},
    first_sees_all=True,
    to_keywords=to_keywords,
    to_config=to_config,
)
