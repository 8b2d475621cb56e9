"""The files of an exported folder that other libraries read.

transformers: config.json, and a tokenizer_config.json that takes tokenizer.json as it is.
sentence-transformers: modules.json with stock modules where they give the same vectors,
and otherwise with the module in `torch_module.py`, which is copied into the folder. What
docjax reads back is in `exported.py`.
"""

import importlib.resources
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docjax.huggingface import configs, exported

TRANSFORMER = "docjax.encoders.transformer.Transformer"
WORDS = "docjax.encoders.word_average.WordAverage"
MEAN = "docjax.encoders.pooling.Mean"
WHOLE = "docjax.data.units.Whole"
EACH = "docjax.data.segments.OneEach"
CODE = {  # in the folder -> in docjax, where only it is kept
    "docjax_module.py": ("docjax.export", "torch_module.py"),
    "docjax_records.py": ("docjax.data", "records.py"),
    "docjax_sentences.py": ("docjax.data", "sentences.py"),
    "docjax_cuts.py": ("docjax.data", "cuts.py"),
}
TOKENS = {  # what transformers calls the special tokens of BERT and RoBERTa
    "pad_token": ("[PAD]", "<pad>"),
    "cls_token": ("[CLS]", "<s>"),
    "sep_token": ("[SEP]", "</s>"),
    "unk_token": ("[UNK]", "<unk>"),
    "mask_token": ("[MASK]", "<mask>"),
}


def is_transformer(facts: Mapping[str, Any]) -> bool:
    """Whether transformers can read the segment encoder."""
    return facts["encoder"]["segment"]["fn"] == TRANSFORMER


def write_transformer(folder: Path, facts: Mapping[str, Any], tokens: set[str]) -> None:
    """Writes what `AutoModel` and `AutoTokenizer` read beside weights and tokenizer.

    `tokens` are all of the tokenizer.
    """
    keywords = facts["encoder"]["segment"]
    kind = "bert" if keywords["position_offset"] == 0 else "roberta"
    _write(folder / "config.json", configs.to_config(keywords, kind))
    special = {
        name: token
        for name, some in TOKENS.items()
        for token in some
        if token in tokens
    }
    tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": facts["limits"]["segment_tokens"],
        "clean_up_tokenization_spaces": False,
    }
    _write(folder / "tokenizer_config.json", tokenizer | special)


def write_modules(folder: Path, facts: Mapping[str, Any], special: bool) -> None:
    """Writes what sentence-transformers reads.

    `special`: the tokenizer puts tokens around a text.
    """
    modules = _stock(facts, special)
    kinds = modules or {"": {}}
    _write(
        folder / "modules.json",
        [
            {
                "idx": i,
                "name": str(i),
                "path": f"{i}_{kind}" if i else "",
                "type": f"{exported.STOCK}models.{kind}"
                if modules
                else exported.MODULE,
            }
            for i, kind in enumerate(kinds)
        ],
    )
    for i, (kind, config) in enumerate(kinds.items()):
        if i:
            (folder / f"{i}_{kind}").mkdir()
            _write(folder / f"{i}_{kind}" / "config.json", config)
    if "Transformer" in kinds:
        _write(folder / "sentence_bert_config.json", kinds["Transformer"])
    _write(
        folder / "config_sentence_transformers.json",
        {
            "model_type": "SentenceTransformer",
            "similarity_fn_name": facts["similarity"],
        },
    )
    if not modules:
        write_code(folder)


def write_code(folder: Path) -> None:
    """Copies our module for sentence-transformers, and what it needs of docjax."""
    for name, (package, source) in CODE.items():
        code = importlib.resources.files(package).joinpath(source).read_bytes()
        code = code.replace(b"\nfrom docjax.data.", b"\nfrom .docjax_")
        (folder / name).write_bytes(code)


def is_stock(folder: Path) -> bool:
    """Whether sentence-transformers reads a folder without our module."""
    return not any((folder / name).exists() for name in CODE)


def _stock(facts: Mapping[str, Any], special: bool) -> dict[str, dict] | None:
    """Stock modules with their configs, in order; None if none give the same vectors.

    They read one segment: the first, or for a mean of words all of a text.
    """
    segment, document = (facts["encoder"][part] for part in ("segment", "document"))
    most = facts["limits"]["inference_segments"]
    if (facts["units"]["fn"], facts["segments"]["fn"]) != (WHOLE, EACH):
        return None
    if segment["fn"] == TRANSFORMER and document["fn"] == MEAN and most == 1:
        first = segment["pooling"] == "first"
        pooling = {
            "word_embedding_dimension": segment["width"],
            "pooling_mode_cls_token": first,
            "pooling_mode_mean_tokens": not first,
        }
        tokens = facts["limits"]["segment_tokens"]
        modules = {"Transformer": {"max_seq_length": tokens}, "Pooling": pooling}
    elif segment["fn"] == WORDS and document["fn"] == MEAN and not most and not special:
        modules = {"StaticEmbedding": {}}
    else:
        return None
    if segment.get("normalize") or document.get("normalize"):
        modules["Normalize"] = {}
    return modules


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
