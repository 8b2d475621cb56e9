"""Hugging Face's config.json <-> the keywords of our Transformer.

Also what a sentence-transformers folder says of pooling, similarity and prompts. Tensors
are in `names.py`, files in `load.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from docjax.errors import UserError
from docjax.types import SIMILARITIES

KINDS = ("bert", "roberta", "xlm-roberta")  # one architecture, counted differently
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
MOST = 2**31 - 1  # of any size
MODULES = ("Transformer", "Pooling", "Normalize")
POOLINGS = {"mean": "mean", "cls": "first"}  # theirs -> ours
OLD_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def keywords(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of Transformer that a config.json asks for.

    Raises:
      UserError: for a model that is not BERT or RoBERTa as published; `source` names
        the file.
    """
    _check_kind(config, source)
    sizes = {ours: _size(config, theirs, source) for ours, theirs in KEYWORDS.items()}
    if sizes["width"] % sizes["heads"]:
        raise UserError(
            f"{source}: hidden_size {sizes['width']} is not a multiple of "
            f"num_attention_heads {sizes['heads']}"
        )
    activation = config.get("hidden_act", "gelu")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise UserError(
            f"{source}: hidden_act {activation!r} is not supported; "
            f"supported are {', '.join(ACTIVATIONS)}"
        )
    return sizes | {
        "position_offset": _offset(config, source),
        "epsilon": _fraction(config, "layer_norm_eps", 1e-12, source),
        "activation": ACTIVATIONS[activation],
        "dropout": _fraction(config, "hidden_dropout_prob", 0.1, source),
    }


def to_config(keywords: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The config.json of BertModel or RobertaModel with these keywords of Transformer.

    Raises:
      UserError: if `kind` is unknown or counts positions from elsewhere.
    """
    if kind not in KINDS:
        raise UserError(f"kind {kind!r} is none of {', '.join(KINDS)}")
    offset = keywords["position_offset"]
    if (kind == "bert") != (offset == 0):
        raise UserError(
            f"position_offset {offset} is not {kind}'s: BERT counts from 0, RoBERTa "
            "from its padding token's id + 1"
        )
    config = {theirs: keywords[ours] for ours, theirs in KEYWORDS.items()}
    return config | {
        "model_type": kind,
        "architectures": ["BertModel" if kind == "bert" else _class(kind)],
        "layer_norm_eps": keywords["epsilon"],
        "hidden_act": keywords["activation"],
        "hidden_dropout_prob": keywords["dropout"],
        "attention_probs_dropout_prob": keywords["dropout"],
        "pad_token_id": max(offset - 1, 0),
        "position_embedding_type": "absolute",
    }


def modules(found: Sequence[Any], source: str) -> dict[str, str]:
    """Kind of each module of a modules.json -> its folder.

    Raises:
      UserError: for a module that we do not have, or a folder elsewhere.
    """
    kinds = {}
    for module in found:
        kind = module.get("type") if isinstance(module, Mapping) else module
        home, _, name = str(kind).rpartition(".")
        path = module.get("path", "") if isinstance(module, Mapping) else None
        if home.split(".")[0] != "sentence_transformers" or name not in MODULES:
            raise UserError(
                f"{source}: module {kind} is not supported; supported are "
                f"{', '.join(MODULES)} of sentence_transformers"
            )
        if not isinstance(path, str) or path in (".", "..") or {"/", "\0"} & {*path}:
            raise UserError(f"{source}: path {path!r} is no folder beside that file")
        kinds[name] = path
    return kinds


def pooling(config: Mapping[str, Any], source: str) -> str:
    """ "mean" or "first", as the config.json of a Pooling module says.

    Raises:
      UserError: for another pooling.
    """
    old = [mode for key, mode in OLD_POOLINGS.items() if config.get(key)]
    mode = config.get("pooling_mode", old or "mean")
    modes = [str(one) for one in (mode if isinstance(mode, list) else [mode])]
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise UserError(
            f"{source}: pooling {' + '.join(modes)} is not supported; "
            f"supported are {', '.join(POOLINGS)}"
        )
    return POOLINGS[modes[0]]


def similarity(config: Mapping[str, Any], source: str) -> str:
    """ "cosine" or "dot", as a config_sentence_transformers.json says.

    Raises:
      UserError: for another similarity.
    """
    found = config.get("similarity_fn_name") or "cosine"
    if found not in SIMILARITIES:
        raise UserError(
            f"{source}: similarity_fn_name {found!r} is not supported; supported are "
            f"{', '.join(SIMILARITIES)}"
        )
    return found


def prompts(config: Mapping[str, Any], source: str) -> dict[str, str]:
    """Name -> words that a config_sentence_transformers.json puts before texts.

    Raises:
      UserError: if they are no words by name.
    """
    found = config.get("prompts") or {}
    if not isinstance(found, Mapping):
        raise UserError(f"{source}: prompts {found!r} are no words by name")
    return {name: str(words) for name, words in found.items() if words}


def _check_kind(config: Mapping[str, Any], source: str) -> None:
    kind = config.get("model_type")
    if kind not in KINDS:
        raise UserError(
            f"{source}: model_type {kind!r} is not supported; "
            f"supported are {', '.join(KINDS)}"
        )
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


def _size(config: Mapping[str, Any], key: str, source: str, least: int = 1) -> int:
    value = config.get(key)
    if type(value) is not int or not least <= value <= MOST:
        raise UserError(
            f"{source}: {key} is {value!r}, but must be a whole number from {least} to "
            f"{MOST}"
        )
    return value


def _fraction(
    config: Mapping[str, Any], key: str, default: float, source: str
) -> float:
    value = config.get(key, default)
    if type(value) not in (int, float) or not 0 <= value < 1:
        raise UserError(f"{source}: {key} is {value!r}, but must be from 0 to below 1")
    return float(value)


def _offset(config: Mapping[str, Any], source: str) -> int:
    # RoBERTa counts from behind its padding token's id.
    if config["model_type"] == "bert":
        return 0
    if config.get("pad_token_id") is None:
        return 2
    return _size(config, "pad_token_id", source, least=0) + 1


def _class(kind: str) -> str:
    return "RobertaModel" if kind == "roberta" else "XLMRobertaModel"
