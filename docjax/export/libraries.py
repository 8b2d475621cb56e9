"""The files of an exported folder that other libraries read.

transformers: config.json, and a tokenizer_config.json that keeps tokenizer.json as is.
sentence-transformers: modules.json with stock modules if they give the same vectors,
else with the module in `torch_module.py`, which is copied into the folder.
`docjax/huggingface/docjax_json.py` has what docjax reads back.
"""

import importlib.resources
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docjax.huggingface import docjax_json, files
from docjax.huggingface.family import Family

# The parts that stock modules have: a text is one segment, of which the mean is made.
STOCK = {"units": "whole", "segments": "one_each", "document": "Mean"}
CODE = {  # file in the folder -> its source in docjax
    "docjax_module.py": ("docjax.export", "torch_module.py"),
    "docjax_segment_encoders.py": ("docjax.export", "torch_segment_encoders.py"),
    "docjax_document_encoders.py": ("docjax.export", "torch_document_encoders.py"),
    "docjax_records.py": ("docjax.data", "records.py"),
    "docjax_pieces.py": ("docjax.data", "pieces.py"),
    "docjax_sentences.py": ("docjax.data", "sentences.py"),
    "docjax_cuts.py": ("docjax.data", "cuts.py"),
    "docjax_neighbours.py": ("docjax.data", "neighbours.py"),
}
TOKENS = {  # what transformers calls the special tokens of BERT and RoBERTa
    "pad_token": ("[PAD]", "<pad>"),
    "cls_token": ("[CLS]", "<s>"),
    "sep_token": ("[SEP]", "</s>"),
    "unk_token": ("[UNK]", "<unk>"),
    "mask_token": ("[MASK]", "<mask>"),
}


def write_transformer(
    folder: Path, facts: Mapping[str, Any], family: Family, tokens: set[str]
) -> None:
    """Writes what `AutoModel` and `AutoTokenizer` read beside weights and tokenizer.

    `tokens` are all tokens that the tokenizer knows.
    """
    _write(folder / "config.json", family.config(facts["encoder"]["segment"]))
    special = {
        name: token
        for name, variants in TOKENS.items()
        for token in variants
        if token in tokens
    }
    tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": facts["limits"]["segment_tokens"],
        "clean_up_tokenization_spaces": False,
    }
    _write(folder / "tokenizer_config.json", tokenizer | special)


def write_modules(
    folder: Path, facts: Mapping[str, Any], family: Family, special: bool
) -> None:
    """Writes what sentence-transformers reads.

    `special`: the tokenizer puts tokens around a text.
    """
    more = adds_to_transformers(folder)
    modules = None if more else _stock(facts, family, special)
    if modules:
        _write_stock(folder, modules)
    else:
        _write_list(folder, {"": docjax_json.MODULE})
        write_code(folder)
    config = {
        "model_type": "SentenceTransformer",
        "similarity_fn_name": facts["similarity"],
    }
    if facts["truncate_dim"] is not None:
        config["truncate_dim"] = facts["truncate_dim"]
    if facts["prompts"]:
        names = "prompts", "default_prompt_name"
        config |= {name: facts[name] for name in names}
    _write(folder / "config_sentence_transformers.json", config)


def _write_stock(folder: Path, modules: Mapping[str, dict]) -> None:
    """Writes stock modules by name; the first lies in the folder itself."""
    paths = {name: f"{i}_{name}" if i else "" for i, name in enumerate(modules)}
    types = {paths[name]: f"{docjax_json.STOCK}models.{name}" for name in modules}
    _write_list(folder, types)
    for name, path in paths.items():
        if path:
            (folder / path).mkdir()
            _write(folder / path / "config.json", modules[name])
    if "Transformer" in modules:
        _write(folder / "sentence_bert_config.json", modules["Transformer"])


def _write_list(folder: Path, types: Mapping[str, str]) -> None:
    """Writes modules.json: the type of each module by its path."""
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": kind}
        for i, (path, kind) in enumerate(types.items())
    ]
    _write(folder / "modules.json", modules)


def write_code(folder: Path) -> None:
    """Copies our module for sentence-transformers, and the files that it imports."""
    for name, (package, source) in CODE.items():
        code = importlib.resources.files(package).joinpath(source).read_bytes()
        code = code.replace(b"\nfrom docjax.data.", b"\nfrom .docjax_")
        (folder / name).write_bytes(code)


def is_stock(folder: Path) -> bool:
    """Whether sentence-transformers reads a folder without our module."""
    return not any((folder / name).exists() for name in CODE)


def adds_to_transformers(folder: Path) -> bool:
    """Whether the segment encoder of a folder has parameters that other libraries lack:
    tables of places or words, or a layer after the pooling."""
    rest = folder / files.REST
    with files.tensors([rest] if rest.exists() else []) as tensors:
        return any(name.startswith("segment/") for name in tensors)


def _stock(
    facts: Mapping[str, Any], family: Family, special: bool
) -> dict[str, dict] | None:
    """Stock modules and configs, in order; None if they would give other vectors."""
    parts, document = facts["torch"], facts["torch"]["document"]
    if any(parts[name]["fn"] != form for name, form in STOCK.items()):
        return None
    segment, limits = parts["segment"], facts["limits"]
    if family.sentence_module == "Transformer":
        modules = _transformer(segment, limits, facts["include_prompt"])
    elif family.sentence_module == "StaticEmbedding":
        as_all = not limits["inference_segments"] and not special
        modules = {"StaticEmbedding": {}} if as_all else None
    else:
        return None
    if modules and (segment.get("normalize") or document.get("normalize")):
        modules["Normalize"] = {}
    return modules


def _transformer(
    segment: Mapping[str, Any], limits: Mapping[str, Any], include_prompt: bool
) -> dict[str, dict] | None:
    """Stock modules for a transformer; None unless the model reads only the first
    segment, and transformers gives the same states in a padded batch."""
    alone_above = segment["alone_above"]
    in_batches = alone_above is None or limits["segment_tokens"] <= alone_above
    if limits["inference_segments"] != 1 or not in_batches:
        return None
    first = segment["pooling"] == "first"
    pooling = {
        "word_embedding_dimension": segment["width"],
        "pooling_mode_cls_token": first,
        "pooling_mode_mean_tokens": not first,
        "include_prompt": include_prompt,
    }
    tokens = {"max_seq_length": limits["segment_tokens"]}
    return {"Transformer": tokens, "Pooling": pooling}


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
