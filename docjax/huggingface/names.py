"""The one table between our parameter paths and Hugging Face's tensor names.

BERT and RoBERTa name their tensors alike, below an optional prefix. Hugging Face keeps
a dense layer's weight as [out, in], we as [in, out]. Configs are in `configs.py`, files
in `load.py`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

TABLE = (
    ("embeddings/tokens/embedding", "embeddings.word_embeddings.weight"),
    ("embeddings/positions/embedding", "embeddings.position_embeddings.weight"),
    ("embeddings/types/embedding", "embeddings.token_type_embeddings.weight"),
    ("embeddings/norm/scale", "embeddings.LayerNorm.weight"),
    ("embeddings/norm/bias", "embeddings.LayerNorm.bias"),
)
LAYER_TABLE = (
    ("attention/query/kernel", "attention.self.query.weight"),
    ("attention/query/bias", "attention.self.query.bias"),
    ("attention/key/kernel", "attention.self.key.weight"),
    ("attention/key/bias", "attention.self.key.bias"),
    ("attention/value/kernel", "attention.self.value.weight"),
    ("attention/value/bias", "attention.self.value.bias"),
    ("attention/output/kernel", "attention.output.dense.weight"),
    ("attention/output/bias", "attention.output.dense.bias"),
    ("attention/norm/scale", "attention.output.LayerNorm.weight"),
    ("attention/norm/bias", "attention.output.LayerNorm.bias"),
    ("feed_forward/inner/kernel", "intermediate.dense.weight"),
    ("feed_forward/inner/bias", "intermediate.dense.bias"),
    ("feed_forward/outer/kernel", "output.dense.weight"),
    ("feed_forward/outer/bias", "output.dense.bias"),
    ("feed_forward/norm/scale", "output.LayerNorm.weight"),
    ("feed_forward/norm/bias", "output.LayerNorm.bias"),
)
ANCHOR = TABLE[0][1]  # the tensor that shows a checkpoint's prefix
UNUSED = ("pooler.", "embeddings.position_ids", "embeddings.token_type_ids")
OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


def table(layers: int) -> dict[str, str]:
    """Our parameter path -> Hugging Face's name without a prefix."""
    return dict(TABLE) | {
        f"layer_{i}/{ours}": f"encoder.layer.{i}.{theirs}"
        for i in range(layers)
        for ours, theirs in LAYER_TABLE
    }


def encoder_names(names: Iterable[str]) -> dict[str, str]:
    """Name in the table -> name in the file, for the tensors of the encoder.

    A prefix such as "bert." is found by the token embeddings; what lies outside of it
    is a task's head, and is left out like the pooler and buffers. Names from before
    2019 (gamma, beta) are understood. Empty without token embeddings.
    """
    names = list(names)
    found = [name for name in names if name.endswith(ANCHOR)]
    if not found:
        return {}
    prefix = min(found, key=len).removesuffix(ANCHOR)
    inside = {n.removeprefix(prefix): n for n in names if n.startswith(prefix)}
    return {
        _modern(short): name
        for short, name in inside.items()
        if short.startswith(("embeddings.", "encoder."))
        and not short.startswith(UNUSED)
    }


def layer_count(names: Iterable[str]) -> int:
    """How many layers the names (as in the table) speak of."""
    numbers = (re.match(r"encoder\.layer\.(\d+)\.", name) for name in names)
    return len({match.group(1) for match in numbers if match})


def swap(path: str, tensor: np.ndarray) -> np.ndarray:
    """A tensor of one side as the other side keeps it."""
    return tensor.T if swapped(path) else tensor


def swapped(path: str) -> bool:
    """Whether the two sides keep the parameter at `path` transposed."""
    return path.endswith("/kernel")


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """{"a/b": x} -> {"a": {"b": x}}."""
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *folders, leaf = path.split("/")
        node = tree
        for folder in folders:
            node = node.setdefault(folder, {})
        node[leaf] = value
    return tree


def flatten(tree: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """{"a": {"b": x}} -> {"a/b": x}."""
    flat = {}
    for key, value in tree.items():
        here = f"{path}/{key}" if path else key
        if isinstance(value, Mapping):
            flat |= flatten(value, here)
        else:
            flat[here] = value
    return flat


def some(items: Sequence[str], most: int = 5) -> str:
    """The first few of some names."""
    rest = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + rest


def _modern(name: str) -> str:
    for old, new in OLD_NAMES.items():
        name = name.replace(old, new)
    return name
