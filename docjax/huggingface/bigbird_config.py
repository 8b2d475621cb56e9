"""Hugging Face's config.json of a BigBird <-> the keywords of ours."""

from collections.abc import Mapping
from typing import Any

from docjax.errors import UserError
from docjax.huggingface import configs

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


def big_bird(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of BigBird for a config.json.

    Raises:
      UserError: for a value that BigBird does not support; `source` names the file.
    """
    for name, supported in FIXED.items():
        value = config.get(name, supported)
        if value != supported:
            raise UserError(
                f"{source}: {name} {value!r} is not supported; only {supported!r} is"
            )
    config = DEFAULTS | dict(config)
    return configs.bert(config, source) | {
        "block": configs.size(config, "block_size", source),
        "random": configs.size(config, "num_random_blocks", source, least=0),
    }


def big_bird_config(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json of a BigBird with these keywords."""
    config = configs.to_config(keywords) | FIXED
    del config["position_embedding_type"]  # transformers' BigBird has no such field
    return config | {
        "block_size": keywords["block"],
        "num_random_blocks": keywords["random"],
    }
