"""Hugging Face's config.json <-> our keywords, for T5's encoder."""

from collections.abc import Mapping
from typing import Any

from docjax.errors import UserError
from docjax.huggingface import configs

KEYWORDS = {  # ours -> theirs
    "vocabulary": "vocab_size",
    "layers": "num_layers",
    "width": "d_model",
    "heads": "num_heads",
    "head_width": "d_kv",
    "hidden": "d_ff",
    "positions": "n_positions",
    "buckets": "relative_attention_num_buckets",
    "farthest": "relative_attention_max_distance",
}
DEFAULTS = {"n_positions": 512, KEYWORDS["buckets"]: 32, KEYWORDS["farthest"]: 128}


def t5(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of T5 for a config.json.

    Raises:
      UserError: for a value that T5 does not support; `source` names the file.
    """
    kind = config.get("feed_forward_proj", "relu")
    if kind != "relu":
        raise UserError(
            f"{source}: feed_forward_proj {kind!r} is not supported: docjax has T5 "
            "with 'relu', as sentence-T5, GTR and INSTRUCTOR have it"
        )
    given = DEFAULTS | dict(config)
    sizes = {ours: configs.size(given, key, source) for ours, key in KEYWORDS.items()}
    return sizes | {
        "epsilon": configs.fraction(config, "layer_norm_epsilon", 1e-6, source),
        "dropout": configs.fraction(config, "dropout_rate", 0.1, source),
        "activation": kind,
        "position_offset": 0,  # T5 has no table of positions
    }


def t5_config(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json of a T5 with these keywords."""
    return {theirs: keywords[ours] for ours, theirs in KEYWORDS.items()} | {
        "layer_norm_epsilon": keywords["epsilon"],
        "dropout_rate": keywords["dropout"],
        "feed_forward_proj": "relu",
        "is_encoder_decoder": False,
        "use_cache": False,
    }
