"""DistilBERT (Sanh et al. 2019): `docjax/encoders/distilbert.py` in other libraries."""

from collections.abc import Mapping
from typing import Any

from docjax.encoders.distilbert import DistilBert
from docjax.huggingface import configs
from docjax.huggingface.family import Family
from docjax.huggingface.names import Names, weights_and_biases

KEYWORDS = {  # ours -> theirs
    "vocabulary": "vocab_size",
    "layers": "n_layers",
    "width": "dim",
    "heads": "n_heads",
    "hidden": "hidden_dim",
    "positions": "max_position_embeddings",
}


def to_keywords(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of DistilBert for a config.json. Raises UserError for a value
    that it does not support; `source` names the file."""
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
        **weights_and_biases({"embeddings/norm": "embeddings.LayerNorm"}),
    },
    layer=weights_and_biases(
        {
            "attention/query": "attention.q_lin",
            "attention/key": "attention.k_lin",
            "attention/value": "attention.v_lin",
            "attention/output": "attention.out_lin",
            "attention/norm": "sa_layer_norm",
            "feed_forward/inner": "ffn.lin1",
            "feed_forward/outer": "ffn.lin2",
            "feed_forward/norm": "output_layer_norm",
        },
        "layer_{i}/",
        "transformer.layer.{i}.",
    ),
    masked_lm=weights_and_biases(
        {"dense": "transform", "norm": "layer_norm"}, "masked_lm/", "vocab_"
    )
    | {"masked_lm/bias": "vocab_projector.bias"},
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
