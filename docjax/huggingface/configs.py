"""Reads values of a config.json, and refuses those that no encoder can have.

The records in `families/` map config.json to the keywords of a segment encoder with
these functions. Also reads similarity and prompts of a sentence-transformers folder;
its modules are in `sentence_modules.py`.
"""

from collections.abc import Mapping
from typing import Any

from docjax.errors import UserError
from docjax.types import SIMILARITIES

SIZES = {  # ours -> what most models of transformers call them
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


def similarity(config: Mapping[str, Any], source: str) -> str:
    """ "cosine" or "dot", as a config_sentence_transformers.json says. Raises UserError
    for another similarity."""
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


def sizes(
    config: Mapping[str, Any], source: str, names: Mapping[str, str] = SIZES
) -> dict[str, int]:
    """The sizes by our names; `names` has theirs. The heads share the width. Raises
    UserError for an impossible size."""
    found = {ours: size(config, theirs, source) for ours, theirs in names.items()}
    if found["width"] % found["heads"]:
        raise UserError(
            f"{source}: {names['width']} {found['width']} is not a multiple of "
            f"{names['heads']} {found['heads']}"
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
