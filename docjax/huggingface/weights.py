"""Weights of a Hugging Face folder or hub name as parameters of our Transformer.

Read from safetensors only: nothing is unpickled, and no code of the folder is imported.
The way back is in `exported.py`.
"""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from docjax import config as config_lib
from docjax.encoders.transformer import Transformer
from docjax.errors import UserError
from docjax.huggingface import configs, exported, files, names

COMPARING = "config_sentence_transformers.json"
ASKED = tuple(  # the first that is there: length and case of texts
    f"sentence_{kind}_config.json" for kind in configs.KINDS
)


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A segment encoder as found; `Transformer(**keywords)` takes `params`."""

    keywords: dict[str, Any]
    params: dict[str, Any]  # nested, float32 numpy arrays
    pooling: str  # "mean" or "first"
    normalize: bool  # vectors are scaled to length 1
    max_tokens: int  # of a segment, special tokens included
    lowercase: bool  # texts are read in small letters, whatever the tokenizer does
    similarity: str  # "cosine" or "dot": how vectors are compared
    prompts: dict[str, str]  # by name: words that belong before texts
    folder: Path  # where the tokenizer lies too


def load(name_or_folder: str | Path, revision: str | None = None) -> Checkpoint:
    """Reads a folder, or a hub name pinned to a revision.

    Of a sentence-transformers folder, its modules say where the transformer lies and
    how it is pooled; of an exported one, docjax.json.

    Raises:
      UserError: for a missing or unsupported model, for weights that are not
        safetensors, and for tensors that do not fit config.json.
    """
    folder, _ = files.find(name_or_folder, revision)
    files.refuse_code(folder)
    if (folder / exported.FACTS).exists():
        inner, (pooling, normalize) = folder, exported.pooling(folder)
    else:
        inner, pooling, normalize = _modules(folder)
    files.refuse_code(inner)
    compared, named = _comparing(folder)
    source = str(inner / "config.json")
    keywords = configs.keywords(config_lib.read_json(inner / "config.json"), source)
    asked = next(filter(None, map(_optional, map(inner.joinpath, ASKED))), {})
    return Checkpoint(
        keywords=keywords,
        params=_params(inner, keywords),
        pooling=pooling,
        normalize=normalize,
        max_tokens=_max_tokens(inner, keywords, asked),
        lowercase=asked.get("do_lower_case") is True,
        similarity=compared,
        prompts=named,
        folder=inner,
    )


def refuse_prompts(found: Checkpoint, source: str | Path) -> None:
    """Raises UserError for a model whose texts are read behind prompts.

    Its vectors of bare texts are others; training from its weights needs no prompts.
    """
    if found.prompts:
        raise UserError(
            f"{source}: the model was trained with prompts before its texts "
            f"({found.prompts}), which docjax does not put there: empty `prompts` in "
            f"{COMPARING} of a copy of the folder, and put them before your texts"
        )


def _modules(folder: Path) -> tuple[Path, str, bool]:
    """Folder of the transformer, pooling, and whether vectors have length 1."""
    path = folder / "modules.json"
    if not path.exists():
        return folder, "mean", False
    found = configs.modules(config_lib.read_json(path, list), str(path))
    inner = folder / found.get("Transformer", "")
    pooling = "mean"
    if "Pooling" in found:
        path = folder / found["Pooling"] / "config.json"
        pooling = configs.pooling(config_lib.read_json(path), str(path))
    return inner, pooling, "Normalize" in found


def _comparing(folder: Path) -> tuple[str, dict[str, str]]:
    """Similarity and prompts, as sentence-transformers has them."""
    path = folder / COMPARING
    config = _optional(path)
    return configs.similarity(config, str(path)), configs.prompts(config, str(path))


def _max_tokens(
    folder: Path, keywords: Mapping[str, Any], asked: Mapping[str, Any]
) -> int:
    """What the folder asks for, at most what its position table has room for."""
    room = keywords["positions"] - keywords["position_offset"]
    tokenizer = _optional(folder / "tokenizer_config.json")
    found = asked.get("max_seq_length") or tokenizer.get("model_max_length") or room
    if type(found) not in (int, float) or not found >= 1:
        raise UserError(f"{folder}: segments of {found!r} tokens cannot be read")
    return int(min(room, found))


def _optional(path: Path) -> dict[str, Any]:
    return config_lib.read_json(path) if path.exists() else {}


def _params(folder: Path, keywords: Mapping[str, Any]) -> dict[str, Any]:
    with files.tensors(files.weights(folder)) as tensors:
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
    tensor = tensors[name][:].astype(np.float32, copy=False)
    return np.ascontiguousarray(names.swap(path, tensor))


def _shapes(keywords: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter, by its path.

    Only one layer is traced, since a trace of twelve takes longer than the weights.
    """
    model = Transformer(**{**keywords, "layers": 1})
    tree = jax.eval_shape(
        lambda: model.init(jax.random.key(0), jnp.zeros((1, 1), int), jnp.ones(1, int))
    )
    first = {path: leaf.shape for path, leaf in names.flatten(tree["params"]).items()}
    return {
        path: first[re.sub(r"^layer_\d+/", "layer_0/", path)]
        for path in names.table(keywords["layers"])
    }


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
                f"{folder}: {len(odd)} {word} tensors: {names.some(sorted(odd))}"
            )


def _check_shape(folder, name, path, tensor, expected) -> None:
    got = tuple(tensor.get_shape())
    want = expected[::-1] if names.swapped(path) else expected
    if got != want:
        raise UserError(
            f"{folder}: {name} has shape {list(got)}, but config.json asks for "
            f"{list(want)}"
        )
