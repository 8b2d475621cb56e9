"""T5's encoder (Raffel et al. 2020): `docjax/encoders/t5.py` in other libraries.

The encoder of sentence-T5, GTR and INSTRUCTOR.
"""

from collections.abc import Mapping
from typing import Any

from docjax.encoders.t5 import T5
from docjax.errors import UserError
from docjax.huggingface import configs
from docjax.huggingface.family import Family
from docjax.huggingface.names import Names

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


def to_keywords(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of T5 for a config.json. Raises UserError for a value
    that it does not support; `source` names the file."""
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


def to_config(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json of a T5 with these keywords."""
    return {theirs: keywords[ours] for ours, theirs in KEYWORDS.items()} | {
        "layer_norm_epsilon": keywords["epsilon"],
        "dropout_rate": keywords["dropout"],
        "feed_forward_proj": "relu",
        "is_encoder_decoder": False,
        "use_cache": False,
    }


NAMES = Names(
    once={
        "embeddings/tokens/embedding": "shared.weight",
        "distances/embedding": (
            "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        ),
        "norm/scale": "encoder.final_layer_norm.weight",
    },
    layer={
        f"layer_{{i}}/{ours}": f"encoder.block.{{i}}.layer.{theirs}"
        for ours, theirs in {
            "attention/norm/scale": "0.layer_norm.weight",
            "attention/query/kernel": "0.SelfAttention.q.weight",
            "attention/key/kernel": "0.SelfAttention.k.weight",
            "attention/value/kernel": "0.SelfAttention.v.weight",
            "attention/output/kernel": "0.SelfAttention.o.weight",
            "feed_forward/norm/scale": "1.layer_norm.weight",
            "feed_forward/inner/kernel": "1.DenseReluDense.wi.weight",
            "feed_forward/outer/kernel": "1.DenseReluDense.wo.weight",
        }.items()
    },
    buffers=("encoder.embed_tokens.",),  # the same as the first
)
FAMILY = Family(
    module=T5,
    names=NAMES,
    training_only=(),
    architectures={"t5": "T5EncoderModel"},
    auto_class="T5EncoderModel",  # AutoModel is the whole model, with its decoder
    takes_positions=False,
    to_keywords=to_keywords,
    to_config=to_config,
)
