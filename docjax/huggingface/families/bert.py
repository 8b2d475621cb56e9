"""BERT (Devlin et al. 2019): `docjax/encoders/transformer.py` in other libraries."""

from collections.abc import Mapping
from typing import Any

from docjax.encoders.transformer import Transformer
from docjax.errors import UserError
from docjax.huggingface import configs
from docjax.huggingface.family import Family
from docjax.huggingface.names import Names, weights_and_biases

ATTENTION_DROPOUT = "attention_probs_dropout_prob"
REFUSED = {
    "is_decoder": "decoders are not supported",
    "add_cross_attention": "cross-attention is not supported",
}


def to_keywords(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of Transformer for a config.json. Raises UserError for a value
    that it does not support; `source` names the file."""
    for key, reason in REFUSED.items():
        if config.get(key):
            raise UserError(f"{source}: {key} is set: {reason}")
    positions = config.get("position_embedding_type", "absolute")
    if positions != "absolute":
        raise UserError(
            f"{source}: position_embedding_type {positions!r} is not supported; "
            "only 'absolute' is"
        )
    return configs.sizes(config, source) | {
        "position_offset": 0,
        "epsilon": configs.fraction(config, "layer_norm_eps", 1e-12, source),
        "activation": configs.activation(config, source),
        "dropout": configs.fraction(config, "hidden_dropout_prob", 0.1, source),
        "attention_dropout": configs.fraction(config, ATTENTION_DROPOUT, 0.1, source),
    }


def to_config(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json of a BERT or RoBERTa with these keywords."""
    config = {theirs: keywords[ours] for ours, theirs in configs.SIZES.items()}
    return config | {
        "layer_norm_eps": keywords["epsilon"],
        "hidden_act": keywords["activation"],
        "hidden_dropout_prob": keywords["dropout"],
        ATTENTION_DROPOUT: keywords["attention_dropout"],
        "pad_token_id": max(keywords["position_offset"] - 1, 0),
        "position_embedding_type": "absolute",
    }


NAMES = Names(
    once={
        "embeddings/tokens/embedding": "embeddings.word_embeddings.weight",
        "embeddings/positions/embedding": "embeddings.position_embeddings.weight",
        "embeddings/types/embedding": "embeddings.token_type_embeddings.weight",
        **weights_and_biases({"embeddings/norm": "embeddings.LayerNorm"}),
    },
    layer=weights_and_biases(
        {
            "attention/query": "attention.self.query",
            "attention/key": "attention.self.key",
            "attention/value": "attention.self.value",
            "attention/output": "attention.output.dense",
            "attention/norm": "attention.output.LayerNorm",
            "feed_forward/inner": "intermediate.dense",
            "feed_forward/outer": "output.dense",
            "feed_forward/norm": "output.LayerNorm",
        },
        "layer_{i}/",
        "encoder.layer.{i}.",
    ),
    masked_lm=weights_and_biases(
        {"dense": "transform.dense", "norm": "transform.LayerNorm"},
        "masked_lm/",
        "cls.predictions.",
    )
    | {"masked_lm/bias": "cls.predictions.bias"},
    prefix="bert.",
    decoder="cls.predictions.decoder.weight",
    buffers=("embeddings.position_ids", "embeddings.token_type_ids"),
)
FAMILY = Family(
    module=Transformer,
    names=NAMES,
    fixed={"position_offset": 0},
    architectures={"bert": "BertModel"},
    model_keywords={"add_pooling_layer": False},
    to_keywords=to_keywords,
    to_config=to_config,
)
