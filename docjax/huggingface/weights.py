"""Weights of a Hugging Face folder or hub name as parameters of our segment encoders.

Weights come only from safetensors: nothing is unpickled, and no code of the folder is
imported. `exported.py` writes weights.
"""

import dataclasses
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from docjax.encoders.document import DocumentEncoder
from docjax.encoders.pooling import Mean
from docjax.encoders.shapes import shapes
from docjax.errors import UserError
from docjax.huggingface import configs, docjax_json, files, names, sentence_modules
from docjax.huggingface.family import Family, by_model_type, family_of_config
from docjax.huggingface.sentence_modules import Modules
from docjax.storage import json_file

logger = logging.getLogger(__name__)

MEND = "take config.json and weights of the same model"
COMPARING = "config_sentence_transformers.json"
OTHERS = {  # what an exported folder may have beside the segment encoder
    "document/": "the document encoder",
    "segment/words/": "the word vectors",
    "head/": "the head",
}
TRACED = 2  # the layers that are traced: the first differs in some families


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
    """What a folder says of its segment encoder, `family.module(**keywords)`."""

    family: Family
    keywords: dict[str, Any]
    pooling: str  # "mean" or "first"
    says_pooling: bool  # else the pooling is a guess, which may be wrong
    normalize: bool  # vectors are scaled to length 1
    max_tokens: int  # of a segment, special tokens included
    lowercase: bool  # texts become lowercase, whatever the tokenizer does
    similarity: str  # "cosine" or "dot": how vectors are compared
    prompts: dict[str, str]  # by name: words to put before texts
    default_prompt_name: str | None  # of texts that are neither query nor document
    include_prompt: bool  # the mean of a segment's tokens includes its prompt
    dense: Path | None  # the folder of the dense layer after the pooling
    folder: Path  # the folder of the transformer, which also holds the tokenizer
    others: tuple[str, ...]  # what an exported folder has beside it


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpoint(Facts):
    """A segment encoder with its parameters."""

    params: dict[str, Any]  # nested, float32 numpy arrays


def load(
    name_or_folder: str | Path, revision: str | None = None, *, masked_lm: bool = False
) -> Checkpoint:
    """Reads a folder, or a hub name pinned to a revision.

    Args:
      masked_lm: also read the head that predicts masked tokens, as
        `params["masked_lm"]`, if the folder has that head.

    Raises:
      UserError: for a missing or unsupported model, for weights that are not
        safetensors, and for tensors that do not fit config.json.
    """
    facts = describe(name_or_folder, revision)
    return Checkpoint(**vars(facts), params=_params(facts, masked_lm))


def describe(name_or_folder: str | Path, revision: str | None = None) -> Facts:
    """What a folder or a hub name says of its encoder; reads no weights. Raises
    UserError for a missing or unsupported model."""
    folder, _ = files.find(name_or_folder, revision)
    files.refuse_code(folder)
    if (folder / docjax_json.FACTS).exists():
        modules = _of_export(folder)
    else:
        modules = sentence_modules.read(folder, str(name_or_folder))
    inner = modules.folder
    files.refuse_code(inner)
    path = folder / COMPARING
    comparing = _optional(path)
    prompts, default = configs.prompts(comparing, str(path))
    config, source = json_file.read(inner / "config.json"), str(inner / "config.json")
    family = family_of_config(config, source)
    keywords = family.to_keywords(config, source)
    limits = _limits(inner)
    return Facts(
        family=family,
        keywords=keywords | modules.projection,
        pooling=modules.pooling,
        says_pooling=modules.says_pooling,
        normalize=modules.normalize,
        max_tokens=_max_tokens(inner, keywords, limits),
        lowercase=limits.get("do_lower_case") is True,
        similarity=configs.similarity(comparing, str(path)),
        prompts=prompts,
        default_prompt_name=default,
        include_prompt=modules.include_prompt,
        dense=modules.dense,
        folder=inner,
        others=_others(inner / files.REST),
    )


def _of_export(folder: Path) -> Modules:
    facts = docjax_json.read(folder)
    pooling, normalize, projection = docjax_json.pooling(facts, folder)
    dense = folder if projection else None
    included = docjax_json.include_prompt(facts)
    return Modules(folder, pooling, normalize, included, dense, projection, True)


def _others(path: Path) -> tuple[str, ...]:
    if not path.exists():
        return ()
    with files.tensors([path]) as tensors:
        return tuple(
            name
            for begin, name in OTHERS.items()
            if any(each.startswith(begin) for each in tensors)
        )


def _max_tokens(
    folder: Path, keywords: Mapping[str, Any], limits: Mapping[str, Any]
) -> int:
    """The tokens that the folder asks for, at most what its position table holds."""
    room = keywords["positions"] - keywords.get("position_offset", 0)
    tokenizer = _optional(folder / "tokenizer_config.json")
    tokens = limits.get("max_seq_length") or tokenizer.get("model_max_length") or room
    if type(tokens) not in (int, float) or not tokens >= 1:
        raise UserError(
            f"{folder}: segments of {tokens!r} tokens cannot be read; give a number of "
            "at least 1 as max_seq_length or model_max_length"
        )
    return int(min(room, tokens))


def _limits(folder: Path) -> dict[str, Any]:
    """What sentence-transformers says of the length and the case of texts."""
    names = (f"sentence_{kind}_config.json" for kind in by_model_type())
    return next(filter(None, (_optional(folder / name) for name in names)), {})


def _optional(path: Path) -> dict[str, Any]:
    return json_file.read(path) if path.exists() else {}


def _params(facts: Facts, masked_lm: bool) -> dict[str, Any]:
    folder, family, keywords = facts.folder, facts.family, facts.keywords
    with files.tensors(files.weights(folder)) as tensors:
        in_file = family.names.encoder_names(tensors)
        _check_names(folder, family.names, in_file, keywords["layers"])
        head = masked_lm and _has_head(folder, family.names, tensors)
        segment = family.module(**keywords, **({"masked_lm": True} if head else {}))
        table, expected = family.table(segment), _shapes(segment, folder)
        if head:
            in_file |= family.names.head_names(tensors)
            table |= family.names.masked_lm
        for path, name in table.items():
            _check_shape(folder, name, path, tensors[in_file[name]], expected[path])
        flat = {
            path: names.read(tensors[in_file[name]], path)
            for path, name in table.items()
        }
    if facts.dense:
        flat |= _dense(facts.dense, expected)
    return unflatten_dict(flat, sep="/")


def _dense(folder: Path, expected: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """The dense layer after the pooling, of a Dense module or of an exported folder.

    A Dense module without a bias gives a bias of 0. Raises UserError for a missing
    tensor, and for tensors of other shapes.
    """
    paths = "projection/kernel", "projection/bias"
    if (folder / files.REST).exists():
        with files.tensors([folder / files.REST]) as tensors:
            return {path: tensors[f"segment/{path}"][:] for path in paths}
    biased = json_file.read(folder / "config.json").get("bias", True)
    in_file = dict(zip(paths, ("linear.weight", "linear.bias")[: 1 + bool(biased)]))
    flat = {paths[1]: np.zeros(expected[paths[1]], np.float32)}
    with files.tensors(files.weights(folder)) as tensors:
        _refuse_names(folder, "missing", set(in_file.values()) - set(tensors))
        for path, name in in_file.items():
            _check_shape(folder, name, path, tensors[name], expected[path])
            flat[path] = names.read(tensors[name], path)
    return flat


def _shapes(segment: Any, folder: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each parameter of a segment encoder, by path.

    All layers have the second layer's shapes: to save time, no further one is traced.
    """
    last = min(segment.layers, TRACED) - 1
    encoder = DocumentEncoder(segment.with_layers(last + 1), Mean())
    params = flatten_dict(shapes(encoder, folder / "config.json")["segment"], sep="/")
    by_path = {path: leaf.shape for path, leaf in params.items()}
    begin = f"layer_{last}/"
    layer = {path: shape for path, shape in by_path.items() if path.startswith(begin)}
    return by_path | {
        f"layer_{number}/{path.removeprefix(begin)}": shape
        for number in range(last + 1, segment.layers)
        for path, shape in layer.items()
    }


def _has_head(
    folder: Path, family_names: names.Names, tensors: Mapping[str, Any]
) -> bool:
    """Whether the file has a head that predicts masked tokens as ours does. Raises
    UserError for a head that lacks a tensor."""
    in_file = family_names.head_names(tensors)
    missing = set(family_names.masked_lm.values()) - set(in_file)
    if not in_file:
        return False
    _refuse_names(folder, "missing", missing)
    decoder = family_names.decoder
    words = family_names.encoder_names(tensors)[family_names.anchor]
    same = lambda: np.array_equal(tensors[decoder][:], tensors[words][:])
    tied = decoder not in tensors or same()
    if not tied:
        logger.warning(
            "%s: the head for masked tokens is left out: %s differs from the "
            "embeddings of the tokens, which docjax uses instead",
            folder,
            decoder,
        )
    return tied


def _check_names(
    folder: Path, family_names: names.Names, in_file: Mapping[str, str], layers: int
) -> None:
    if not in_file:
        raise UserError(
            f"{folder}: no tensor is called {family_names.anchor}, so this is not an "
            "encoder; give the folder of an encoder"
        )
    count = family_names.layer_count(in_file)
    if count != layers:
        raise UserError(
            f"{folder}: weights of {count} layers, but config.json says {layers}; "
            f"{MEND}"
        )
    expected = set(family_names.table(layers).values())
    _refuse_names(folder, "missing", expected - set(in_file))
    _refuse_names(folder, "unexpected", set(in_file) - expected)


def _refuse_names(folder: Path, word: str, odd: set[str]) -> None:
    if odd:
        raise UserError(
            f"{folder}: {len(odd)} {word} tensors: {names.some(sorted(odd))}; {MEND}"
        )


def _check_shape(folder, name, path, tensor, expected) -> None:
    got, want = tuple(tensor.get_shape()), names.shape_in_file(path, expected)
    if got != want:
        raise UserError(
            f"{folder}: {name} has shape {list(got)}, but config.json asks for "
            f"{list(want)}; {MEND}"
        )
