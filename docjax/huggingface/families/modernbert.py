"""ModernBERT (Warner et al. 2024): `docjax/encoders/modernbert.py` in other libraries."""

from collections.abc import Mapping, Sequence
from typing import Any

from docjax.encoders.modernbert import ModernBert
from docjax.errors import UserError
from docjax.huggingface import configs
from docjax.huggingface.family import Family
from docjax.huggingface.names import Names

FULL, SLIDING = "full_attention", "sliding_attention"  # transformers' kinds of layers
KEYWORDS = {  # ours -> theirs
    ours: theirs for ours, theirs in configs.SIZES.items() if ours != "types"
}
BIASES = ("attention_bias", "mlp_bias", "norm_bias", "classifier_bias")
SPECIAL = ("pad", "bos", "eos", "cls", "sep")


def to_keywords(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of ModernBert for a config.json. Raises UserError for a value
    that it does not support; `source` names the file."""
    _check_supported(config, source)
    sizes = configs.sizes(config, source, KEYWORDS)
    given = {"local_attention": 128} | dict(config)
    return sizes | {
        "epsilon": configs.fraction(config, "norm_eps", 1e-5, source),
        "activation": configs.activation(config, source, "hidden_activation"),
        "dropout": configs.fraction(config, "mlp_dropout", 0.0, source),
        "attention_dropout": configs.fraction(config, "attention_dropout", 0.0, source),
        "window": configs.size(given, "local_attention", source),
        "global_every": _global_every(config, sizes["layers"], source),
        "theta": _theta(config, source, FULL, "global_rope_theta", 160_000.0),
        "local_theta": _theta(config, source, SLIDING, "local_rope_theta", 10_000.0),
    }


def to_config(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json of a ModernBERT with these keywords."""
    every, rope = keywords["global_every"], {"rope_type": "default"}
    theta, local_theta = keywords["theta"], keywords["local_theta"]
    return {
        # The special tokens are those of the tokenizer; the model does not read them.
        **{f"{name}_token_id": None for name in SPECIAL},
        **{theirs: keywords[ours] for ours, theirs in KEYWORDS.items()},
        "norm_eps": keywords["epsilon"],
        "hidden_activation": keywords["activation"],
        "embedding_dropout": keywords["dropout"],
        "mlp_dropout": keywords["dropout"],
        "attention_dropout": keywords["attention_dropout"],
        "local_attention": keywords["window"],
        "layer_types": _pattern(keywords["layers"], every),
        "rope_parameters": {
            FULL: rope | {"rope_theta": theta},
            SLIDING: rope | {"rope_theta": local_theta},
        },
        # The names of transformers 4.
        "global_attn_every_n_layers": every,
        "global_rope_theta": theta,
        "local_rope_theta": local_theta,
    }


def _check_supported(config: Mapping[str, Any], source: str) -> None:
    for key in BIASES:
        if config.get(key):
            raise UserError(
                f"{source}: {key} is set, but docjax has ModernBERT without biases only"
            )
    if not config.get("decoder_bias", True):
        raise UserError(
            f"{source}: decoder_bias is false, but docjax's head for masked tokens has "
            "a bias"
        )
    act = config.get("classifier_activation", "gelu")
    if act != "gelu":
        raise UserError(f"{source}: classifier_activation {act!r} is not 'gelu'")


def _pattern(layers: int, every: int) -> list[str]:
    return [SLIDING if number % every else FULL for number in range(layers)]


def _global_every(config: Mapping[str, Any], layers: int, source: str) -> int:
    """After how many layers one with global attention comes again."""
    kinds = config.get("layer_types")
    if kinds is None:
        key = "global_attn_every_n_layers"
        return configs.size(config, key, source) if key in config else 3
    if isinstance(kinds, Sequence) and len(kinds) == layers:
        again = [i for i, kind in enumerate(kinds) if i and kind == FULL]
        every = again[0] if again else layers
        if list(kinds) == _pattern(layers, every):
            return every
    raise UserError(
        f"{source}: layer_types {kinds!r} is a pattern that docjax does not have: "
        f"{layers} layers with {FULL} in the first and in every n-th after it, and "
        f"{SLIDING} in the others"
    )


def _theta(
    config: Mapping[str, Any], source: str, kind: str, key: str, default: float
) -> float:
    """The base of the rotary positions in layers of this kind."""
    ropes = config.get("rope_parameters") or {}
    rope = (ropes.get(kind) if isinstance(ropes, Mapping) else None) or {}
    scaling = config.get("rope_scaling") or rope.get("rope_type", "default")
    if scaling != "default":
        raise UserError(
            f"{source}: the rotary positions of {kind} are scaled ({scaling!r}): docjax "
            "has unscaled ones only"
        )
    theta = rope.get("rope_theta", config.get(key, default))
    if type(theta) not in (int, float) or not theta > 0:
        raise UserError(f"{source}: {key} is {theta!r}, but must be above 0")
    return float(theta)


NAMES = Names(
    once={
        "embeddings/tokens/embedding": "embeddings.tok_embeddings.weight",
        "embeddings/norm/scale": "embeddings.norm.weight",
        "norm/scale": "final_norm.weight",
    },
    layer={
        f"layer_{{i}}/{ours}": f"layers.{{i}}.{theirs}"
        for ours, theirs in {
            "attention/norm/scale": "attn_norm.weight",
            "attention/qkv/kernel": "attn.Wqkv.weight",
            "attention/output/kernel": "attn.Wo.weight",
            "feed_forward/norm/scale": "mlp_norm.weight",
            "feed_forward/inner/kernel": "mlp.Wi.weight",
            "feed_forward/outer/kernel": "mlp.Wo.weight",
        }.items()
    },
    missing=("layer_0/attention/norm/scale",),
    masked_lm={
        "masked_lm/dense/kernel": "head.dense.weight",
        "masked_lm/norm/scale": "head.norm.weight",
        "masked_lm/bias": "decoder.bias",
    },
    prefix="model.",
    decoder="decoder.weight",
)
FAMILY = Family(
    module=ModernBert,
    names=NAMES,
    architectures={"modernbert": "ModernBertModel"},
    to_keywords=to_keywords,
    to_config=to_config,
)
