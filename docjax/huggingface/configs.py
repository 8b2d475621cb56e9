"""Hugging Face's config.json <-> the keywords of our segment encoders.

Also reads similarity and prompts of a sentence-transformers folder; its modules are in
`sentence_modules.py`. `families.py` says which family has which mapping; encoders with
windows are in `long_configs.py`, tensors in `names.py`, files in `files.py`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from docjax.errors import UserError
from docjax.types import SIMILARITIES

KEYWORDS = {  # ours -> theirs
    "vocabulary": "vocab_size",
    "layers": "num_hidden_layers",
    "width": "hidden_size",
    "heads": "num_attention_heads",
    "hidden": "intermediate_size",
    "positions": "max_position_embeddings",
    "types": "type_vocab_size",
}
ACTIVATIONS = {  # theirs -> ours
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
}
MOST = 2**31 - 1  # the largest value of any size


def bert(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of Transformer for the config.json of a BERT.

    Raises:
      UserError: for a value that Transformer does not support; `source` names the file.
    """
    return transformer(config, source) | {"position_offset": 0}


def roberta(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of Transformer for the config.json of a RoBERTa; raises as `bert`.

    RoBERTa's positions start at the id after its padding token's id.
    """
    keywords = transformer(config, source)
    if config.get("pad_token_id") is None:
        return keywords | {"position_offset": 2}
    padding = size(config, "pad_token_id", source, least=0)
    return keywords | {"position_offset": padding + 1}


def to_config(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json of a BERT or RoBERTa with these keywords of Transformer."""
    config = {theirs: keywords[ours] for ours, theirs in KEYWORDS.items()}
    return config | {
        "layer_norm_eps": keywords["epsilon"],
        "hidden_act": keywords["activation"],
        "hidden_dropout_prob": keywords["dropout"],
        "attention_probs_dropout_prob": keywords["attention_dropout"],
        "pad_token_id": max(keywords["position_offset"] - 1, 0),
        "position_embedding_type": "absolute",
    }


def similarity(config: Mapping[str, Any], source: str) -> str:
    """ "cosine" or "dot", as a config_sentence_transformers.json says.

    Raises:
      UserError: for another similarity.
    """
    name = config.get("similarity_fn_name") or "cosine"
    if name not in SIMILARITIES:
        raise UserError(
            f"{source}: similarity_fn_name {name!r} is not supported; supported are "
            f"{', '.join(SIMILARITIES)}"
        )
    return name


def prompts(
    config: Mapping[str, Any], source: str
) -> tuple[dict[str, str], str | None]:
    """Name of each prompt in a config_sentence_transformers.json -> its words, and the
    name of the prompt for texts of no other kind.

    Raises:
      UserError: if the prompts are not an object of words, or lack that name.
    """
    by_name, default = config.get("prompts") or {}, config.get("default_prompt_name")
    valid = isinstance(by_name, Mapping) and all(
        isinstance(words, str | None) for words in by_name.values()
    )
    if not valid:
        raise UserError(
            f"{source}: prompts {by_name!r} is not an object of words; write names and "
            'words, as in {"query": "query: "}'
        )
    if default is not None and default not in by_name:
        raise UserError(
            f"{source}: default_prompt_name {default!r} is not a name in prompts: "
            f"{', '.join(by_name) or 'there is none'}"
        )
    given = {name: words for name, words in by_name.items() if words is not None}
    return given, default  # an empty prompt says that texts of this kind have none


def transformer(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords that BERT, RoBERTa and Longformer share; raises as `bert`."""
    _check_supported(config, source)
    return sizes(config, source, KEYWORDS) | {
        "epsilon": fraction(config, "layer_norm_eps", 1e-12, source),
        "activation": activation(config, source),
        "dropout": fraction(config, "hidden_dropout_prob", 0.1, source),
        "attention_dropout": fraction(
            config, "attention_probs_dropout_prob", 0.1, source
        ),
    }


def _check_supported(config: Mapping[str, Any], source: str) -> None:
    """Raises UserError for unsupported variants of BERT and RoBERTa."""
    refused = {
        "is_decoder": "decoders are not supported",
        "add_cross_attention": "cross-attention is not supported",
    }
    for key, reason in refused.items():
        if config.get(key):
            raise UserError(f"{source}: {key} is set: {reason}")
    positions = config.get("position_embedding_type", "absolute")
    if positions != "absolute":
        raise UserError(
            f"{source}: position_embedding_type {positions!r} is not supported; "
            "only 'absolute' is"
        )


def sizes(
    config: Mapping[str, Any], source: str, names: Iterable[str]
) -> dict[str, int]:
    """The sizes with these of our names. Raises UserError for an impossible size."""
    found = {ours: size(config, KEYWORDS[ours], source) for ours in names}
    if found["width"] % found["heads"]:
        raise UserError(
            f"{source}: hidden_size {found['width']} is not a multiple of "
            f"num_attention_heads {found['heads']}"
        )
    return found


def activation(config: Mapping[str, Any], source: str, key: str = "hidden_act") -> str:
    """Our name of the activation at `key`. Raises UserError for an unknown one."""
    name = config.get(key, "gelu")
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise UserError(
            f"{source}: {key} {name!r} is not supported; "
            f"supported are {', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]


def size(config: Mapping[str, Any], key: str, source: str, least: int = 1) -> int:
    """The whole number at `key`. Raises UserError for anything else."""
    value = config.get(key)
    if type(value) is not int or not least <= value <= MOST:
        raise UserError(
            f"{source}: {key} is {value!r}, but must be a whole number from {least} to "
            f"{MOST}"
        )
    return value


def fraction(config: Mapping[str, Any], key: str, default: float, source: str) -> float:
    """The number below 1 at `key`. Raises UserError for anything else."""
    value = config.get(key, default)
    if type(value) not in (int, float) or not 0 <= value < 1:
        raise UserError(f"{source}: {key} is {value!r}, but must be from 0 to below 1")
    return float(value)
