"""DistilBERT (Sanh et al. 2019): `docjax/encoders/distilbert.py` in other libraries."""

from collections.abc import Mapping
from typing import Any

from docjax.encoders.distilbert import DistilBert
from docjax.huggingface import configs
from docjax.huggingface.family import Family
from docjax.huggingface.names import Names

KEYWORDS = {  # ours -> theirs
    "vocabulary": "vocab_size",
    "layers": "n_layers",
    "width": "dim",
    "heads": "n_heads",
    "hidden": "hidden_dim",
    "positions": "max_position_embeddings",
}


def to_keywords(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of DistilBert for a config.json.

    Raises:
      UserError: for a value that DistilBert does not support; `source` names the file.
    """
    return configs.sizes(config, source, KEYWORDS) | {
        "types": 0,
        "position_offset": 0,
        "epsilon": 1e-12,  # in the code of transformers, not in its config
        "activation": configs.activation(config, source, "activation"),
        "dropout": configs.fraction(config, "dropout", 0.1, source),
        "attention_dropout": configs.fraction(config, "attention_dropout", 0.1, source),
    }


def to_config(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json of a DistilBERT with these keywords."""
    same = "activation", "dropout", "attention_dropout"
    sizes = {theirs: keywords[ours] for ours, theirs in KEYWORDS.items()}
    return sizes | {name: keywords[name] for name in same}


NAMES = Names(
    once={
        "embeddings/tokens/embedding": "embeddings.word_embeddings.weight",
        "embeddings/positions/embedding": "embeddings.position_embeddings.weight",
        "embeddings/norm/scale": "embeddings.LayerNorm.weight",
        "embeddings/norm/bias": "embeddings.LayerNorm.bias",
    },
    layer={
        f"layer_{{i}}/{ours}": f"transformer.layer.{{i}}.{theirs}"
        for ours, theirs in {
            "attention/query/kernel": "attention.q_lin.weight",
            "attention/query/bias": "attention.q_lin.bias",
            "attention/key/kernel": "attention.k_lin.weight",
            "attention/key/bias": "attention.k_lin.bias",
            "attention/value/kernel": "attention.v_lin.weight",
            "attention/value/bias": "attention.v_lin.bias",
            "attention/output/kernel": "attention.out_lin.weight",
            "attention/output/bias": "attention.out_lin.bias",
            "attention/norm/scale": "sa_layer_norm.weight",
            "attention/norm/bias": "sa_layer_norm.bias",
            "feed_forward/inner/kernel": "ffn.lin1.weight",
            "feed_forward/inner/bias": "ffn.lin1.bias",
            "feed_forward/outer/kernel": "ffn.lin2.weight",
            "feed_forward/outer/bias": "ffn.lin2.bias",
            "feed_forward/norm/scale": "output_layer_norm.weight",
            "feed_forward/norm/bias": "output_layer_norm.bias",
        }.items()
    },
    masked_lm={
        "masked_lm/dense/kernel": "vocab_transform.weight",
        "masked_lm/dense/bias": "vocab_transform.bias",
        "masked_lm/norm/scale": "vocab_layer_norm.weight",
        "masked_lm/norm/bias": "vocab_layer_norm.bias",
        "masked_lm/bias": "vocab_projector.bias",
    },
    prefix="distilbert.",
    decoder="vocab_projector.weight",
    buffers=("embeddings.position_ids",),
)
FAMILY = Family(
    module=DistilBert,
    names=NAMES,
    architectures={"distilbert": "DistilBertModel"},
    to_keywords=to_keywords,
    to_config=to_config,
)
