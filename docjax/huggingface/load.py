"""Weights of a Hugging Face folder or hub name as parameters of our Transformer.

Read from safetensors only: nothing is unpickled, and no code of the folder is imported.
The way back is in `export.py`.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from docjax.config import UserError
from docjax.encoders.transformer import Transformer
from docjax.huggingface import configs, files, names


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A segment encoder as found; `Transformer(**keywords)` takes `params`."""

    keywords: dict[str, Any]
    params: dict[str, Any]  # nested, float32 numpy arrays
    pooling: str  # "mean" or "first"
    normalize: bool  # vectors are scaled to length 1
    max_tokens: int  # of a segment, special tokens included
    folder: Path  # where the tokenizer lies too
    revision: str | None = None  # the hub's commit


def load(
    name_or_folder: str | Path,
    revision: str | None = None,
    local_files_only: bool = False,
) -> Checkpoint:
    """Reads a folder, or a hub name pinned to a revision.

    Raises:
      UserError: for a missing or unsupported model, for weights that are not
        safetensors, and for tensors that do not fit config.json.
    """
    folder, commit = files.find(name_or_folder, revision, local_files_only)
    source = str(folder / "config.json")
    keywords = configs.keywords(files.read_json(folder / "config.json"), source)
    pooling, normalize = _pooling(folder)
    return Checkpoint(
        keywords=keywords,
        params=_params(folder, keywords),
        pooling=pooling,
        normalize=normalize,
        max_tokens=_max_tokens(folder, keywords),
        folder=folder,
        revision=commit,
    )


def _pooling(folder: Path) -> tuple[str, bool]:
    path = folder / "modules.json"
    if not path.exists():
        return "mean", False
    modules = files.read_json(path, list)
    found = [m for m in modules if configs.module_name(m) == "Pooling"]
    config = files.read_json(folder / found[0]["path"] / "config.json") if found else {}
    normalize = any(configs.module_name(m) == "Normalize" for m in modules)
    return configs.pooling(modules, config, str(path)), normalize


def _max_tokens(folder: Path, keywords: Mapping[str, Any]) -> int:
    most = keywords["positions"] - keywords["position_offset"]
    path = folder / "sentence_bert_config.json"
    asked = files.read_json(path).get("max_seq_length") if path.exists() else None
    return min(most, asked or most)


def _params(folder: Path, keywords: Mapping[str, Any]) -> dict[str, Any]:
    with files.tensors(folder) as tensors:
        found = names.encoder_names(tensors)
        _check_names(folder, found, keywords["layers"])
        table = names.table(keywords["layers"])
        shapes = _shapes(keywords)
        for path, name in table.items():
            _check_shape(folder, name, path, tensors[found[name]], shapes[path])
        return names.nest(
            {path: _read(tensors, found[name], path) for path, name in table.items()}
        )


def _read(tensors: Mapping[str, Any], name: str, path: str) -> np.ndarray:
    tensor = tensors[name][:].astype(np.float32)
    return np.ascontiguousarray(names.swap(path, tensor))


def _shapes(keywords: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    shape = (
        jax.ShapeDtypeStruct((1, 1), jnp.int32),
        jax.ShapeDtypeStruct((1,), jnp.int32),
    )
    tree = jax.eval_shape(Transformer(**keywords).init, jax.random.key(0), *shape)
    return {path: leaf.shape for path, leaf in names.flatten(tree["params"]).items()}


def _check_names(folder: Path, found: Mapping[str, str], layers: int) -> None:
    if not found:
        raise UserError(f"{folder}: no tensor is called {names.ANCHOR}: not an encoder")
    if names.layer_count(found) != layers:
        raise UserError(
            f"{folder}: weights of {names.layer_count(found)} layers, but config.json "
            f"says {layers}"
        )
    expected = set(names.table(layers).values())
    for word, odd in (
        ("missing", expected - set(found)),
        ("unexpected", set(found) - expected),
    ):
        if odd:
            raise UserError(
                f"{folder}: {len(odd)} {word} tensors: {_some(sorted(odd))}"
            )


def _check_shape(folder, name, path, tensor, expected) -> None:
    got = tuple(tensor.get_shape())
    want = expected[::-1] if path.endswith("/kernel") else expected
    if got != want:
        raise UserError(
            f"{folder}: {name} has shape {list(got)}, but config.json asks for "
            f"{list(want)}"
        )


def _some(items: list[str], most: int = 5) -> str:
    rest = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + rest
