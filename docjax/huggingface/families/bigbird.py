"""BigBird (Zaheer et al. 2020): `docjax/encoders/bigbird.py` in other libraries."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from docjax.encoders.bigbird import BigBird
from docjax.encoders.block_sparse import Pattern
from docjax.errors import UserError
from docjax.huggingface import configs
from docjax.huggingface.families import bert

FIXED = {  # the values of these fields that docjax has
    "attention_type": "block_sparse",
    "use_bias": True,
    "rescale_embeddings": False,
}
DEFAULTS = {
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu_new",
    "block_size": 64,
    "num_random_blocks": 3,
}


def to_keywords(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of BigBird for a config.json. Raises UserError for a value
    that it does not support; `source` names the file."""
    for name, supported in FIXED.items():
        value = config.get(name, supported)
        if value != supported:
            raise UserError(
                f"{source}: {name} {value!r} is not supported; only {supported!r} is"
            )
    config = DEFAULTS | dict(config)
    return bert.to_keywords(config, source) | {
        "block": configs.size(config, "block_size", source),
        "random": configs.size(config, "num_random_blocks", source, least=0),
    }


def to_config(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json of a BigBird with these keywords."""
    config = bert.to_config(keywords) | FIXED
    del config["position_embedding_type"]  # transformers' BigBird has no such field
    sizes = {"block_size": keywords["block"], "num_random_blocks": keywords["random"]}
    return config | sizes


FAMILY = dataclasses.replace(
    bert.FAMILY,
    module=BigBird,
    exported_as="BlockSparse",
    fixed={},
    architectures={"big_bird": "BigBirdModel"},
    alone_above=lambda keywords: Pattern(keywords["block"], keywords["random"]).dense,
    to_keywords=to_keywords,
    to_config=to_config,
)
