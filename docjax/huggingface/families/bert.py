"""BERT (Devlin et al. 2019): `docjax/encoders/transformer.py` in other libraries."""

from collections.abc import Mapping
from typing import Any

from docjax.encoders.transformer import Transformer
from docjax.errors import UserError
from docjax.huggingface import configs
from docjax.huggingface.family import Family
from docjax.huggingface.names import Names

REFUSED = {
    "is_decoder": "decoders are not supported",
    "add_cross_attention": "cross-attention is not supported",
}


def to_keywords(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of Transformer for a config.json.

    Raises:
      UserError: for a value that Transformer does not support; `source` names the file.
    """
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
        "attention_dropout": configs.fraction(
            config, "attention_probs_dropout_prob", 0.1, source
        ),
    }


def to_config(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json of a BERT or RoBERTa with these keywords."""
    config = {theirs: keywords[ours] for ours, theirs in configs.SIZES.items()}
    return config | {
        "layer_norm_eps": keywords["epsilon"],
        "hidden_act": keywords["activation"],
        "hidden_dropout_prob": keywords["dropout"],
        "attention_probs_dropout_prob": keywords["attention_dropout"],
        "pad_token_id": max(keywords["position_offset"] - 1, 0),
        "position_embedding_type": "absolute",
    }


NAMES = Names(
    once={
        "embeddings/tokens/embedding": "embeddings.word_embeddings.weight",
        "embeddings/positions/embedding": "embeddings.position_embeddings.weight",
        "embeddings/types/embedding": "embeddings.token_type_embeddings.weight",
        "embeddings/norm/scale": "embeddings.LayerNorm.weight",
        "embeddings/norm/bias": "embeddings.LayerNorm.bias",
    },
    layer={
        f"layer_{{i}}/{ours}": f"encoder.layer.{{i}}.{theirs}"
        for ours, theirs in {
            "attention/query/kernel": "attention.self.query.weight",
            "attention/query/bias": "attention.self.query.bias",
            "attention/key/kernel": "attention.self.key.weight",
            "attention/key/bias": "attention.self.key.bias",
            "attention/value/kernel": "attention.self.value.weight",
            "attention/value/bias": "attention.self.value.bias",
            "attention/output/kernel": "attention.output.dense.weight",
            "attention/output/bias": "attention.output.dense.bias",
            "attention/norm/scale": "attention.output.LayerNorm.weight",
            "attention/norm/bias": "attention.output.LayerNorm.bias",
            "feed_forward/inner/kernel": "intermediate.dense.weight",
            "feed_forward/inner/bias": "intermediate.dense.bias",
            "feed_forward/outer/kernel": "output.dense.weight",
            "feed_forward/outer/bias": "output.dense.bias",
            "feed_forward/norm/scale": "output.LayerNorm.weight",
            "feed_forward/norm/bias": "output.LayerNorm.bias",
        }.items()
    },
    masked_lm={
        "masked_lm/dense/kernel": "cls.predictions.transform.dense.weight",
        "masked_lm/dense/bias": "cls.predictions.transform.dense.bias",
        "masked_lm/norm/scale": "cls.predictions.transform.LayerNorm.weight",
        "masked_lm/norm/bias": "cls.predictions.transform.LayerNorm.bias",
        "masked_lm/bias": "cls.predictions.bias",
    },
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
