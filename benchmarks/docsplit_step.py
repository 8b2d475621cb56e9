"""DocSplit's published step against Hugging Face torch, interleaved on the same machine.

    python -m benchmarks.docsplit_step --layers 2 --repeats 3
    python -m benchmarks.docsplit_step --dtype bfloat16 --layers 12 --microbatch 36

36 documents, two views of 512 tokens each, BERT's base shape (fewer layers fit more
machines), by default in float32 and with dropout 0.1 of attention weights too, cosine
InfoNCE with a tanh layer, and 0.1 times the masked-language-model loss of both views in a
second pass; AdamW. torch does what the published code does: it keeps the activations of
all views, and reads the masked views after the gradient of the first loss. docjax keeps
them where memory allows, as its runs do (`--keep 0`: none). Both begin with the same
random parameters; the losses without dropout must agree. Prints seconds of each, and the
ratio of the medians.

Both use the GPU where JAX has one. With `--dtype bfloat16` torch computes under autocast.
"""

import argparse
import dataclasses
import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
import transformers

from benchmarks import tiny
from benchmarks.turns import in_turns
from docjax.data.masking import Masking
from docjax.data.packing import Layout, pack
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.pooling import Mean, TrainingHead
from docjax.encoders.transformer import Transformer
from docjax.huggingface import exported
from docjax.huggingface.families import bert
from docjax.objectives.infonce import infonce
from docjax.training import memory, sharding
from docjax.training import optimizer as optimizers
from docjax.training.gradient_cache import GradientCache
from docjax.training.step import initial_state, make_step
from docjax.types import Batch, Frame, Segments, Targets
from docjax.views.halves import Halves

MASK, RATE, WEIGHT, TEMPERATURE = 103, 0.15, 0.1, 0.05
RATE_OF_LEARNING = 5e-5
FIELDS = (  # of the encoder, for config.json
    *("vocabulary", "layers", "width", "heads", "hidden", "positions", "types"),
    *("epsilon", "activation", "dropout", "attention_dropout", "position_offset"),
    "masked_lm",
)
MARK = np.array([101], np.int32), np.array([102], np.int32)


def batch_of(flags: argparse.Namespace) -> Batch:
    """Documents of random words: every view has `tokens` tokens with its marks."""
    generator = np.random.default_rng(0)
    frame = Frame(*MARK, flags.tokens)

    def view() -> Segments:
        words = generator.integers(1000, 30000, flags.tokens - 2).astype(np.int32)
        return Segments(
            tokens=np.concatenate([MARK[0], words, MARK[1]]),
            offsets=np.array([0, flags.tokens]),
            places=np.zeros((1, 2), np.int32),
            edges=np.zeros((0, 2), np.int32),
        )

    views = [(view(), view()) for _ in range(flags.documents)]
    layout = Layout(flags.microbatch, (flags.tokens,), flags.tokens, None)
    targets = Targets(np.full(flags.documents, -1, np.int32))
    masking = Masking(RATE, MASK, 30522, frame)
    return pack(views, layout, targets, masking, np.random.default_rng(1))


def of_torch(
    folder: str, batch: Batch, head: Any, flags: argparse.Namespace
) -> tuple[Callable, Callable]:
    """The step in torch, and the loss without dropout."""
    device = "cuda" if jax.default_backend() == "gpu" else "cpu"
    model = transformers.BertForMaskedLM.from_pretrained(folder)
    dense = torch.nn.Linear(*head["kernel"].shape)
    dense.weight.data = torch.tensor(np.asarray(head["kernel"])).T.contiguous()
    dense.bias.data = torch.tensor(np.asarray(head["bias"]))
    model, dense = model.to(device), dense.to(device)
    parameters = [*model.parameters(), *dense.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=RATE_OF_LEARNING, weight_decay=0.01)
    long = lambda arrays: torch.as_tensor(np.concatenate(arrays)).long().to(device)
    autocast = lambda: torch.autocast(
        device, torch.bfloat16, enabled=flags.dtype == "bfloat16"
    )
    tokens = long([each.tokens for each in batch.microbatches])
    rows = long([np.asarray(batch.rows)[..., 0]])
    masked = long([each.microbatch.tokens for each in batch.masked])
    places = long([each.positions for each in batch.masked])
    answers = long([each.answers for each in batch.masked])

    def contrastive() -> torch.Tensor:
        states = model.bert(tokens).last_hidden_state[:, 0]
        first, second = (torch.tanh(dense(states[of])) for of in rows)
        unit = torch.nn.functional.normalize
        logits = unit(first) @ unit(second).T / TEMPERATURE
        own = torch.arange(len(logits), device=device)
        return torch.nn.functional.cross_entropy(logits.float(), own)

    def tokens_loss() -> torch.Tensor:
        states = model.bert(masked).last_hidden_state
        each = torch.arange(len(states), device=device)
        chosen = states[each[:, None], places][answers >= 0]
        scores = model.cls(chosen)
        return torch.nn.functional.cross_entropy(scores, answers[answers >= 0])

    def step() -> float:
        model.train()
        optimizer.zero_grad()
        with autocast():
            first = contrastive()
        first.backward()
        with autocast():
            second = WEIGHT * tokens_loss()
        second.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return (first + second).item()

    def loss() -> float:
        model.eval()
        with torch.inference_mode(), autocast():
            return (contrastive() + WEIGHT * tokens_loss()).item()

    return step, loss


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--documents", type=int, default=36)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--microbatch", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--attention-dropout", type=float, default=0.1)
    parser.add_argument("--keep", type=int, help="micro-batches (as memory allows)")
    sizes = "--layers", 1, "--width", 64, "--documents", 2, "--tokens", 16
    flags = tiny.parse(parser, given, *sizes, "--microbatch", 4, "--repeats", 1)
    sizes = dict(layers=flags.layers, width=flags.width, heads=flags.width // 64)
    segment = Transformer(
        **sizes,
        **dict(vocabulary=30522, hidden=4 * flags.width, positions=512, types=2),
        **dict(position_offset=0, epsilon=1e-12, masked_lm=True),
        attention_dropout=flags.attention_dropout,
        dtype=flags.dtype,
    )
    encoder = DocumentEncoder(segment, Mean(), TrainingHead())
    mesh = sharding.mesh()
    params, batch = fresh_params(encoder, 0), batch_of(flags)
    objective = lambda vectors, targets: infonce(
        vectors,
        targets,
        similarity="cosine",
        temperature=TEMPERATURE,
        symmetric=False,
    )
    cache = GradientCache(encoder, objective, mesh, Halves.kinds, WEIGHT)
    optimizer = optimizers.adamw(
        1000, learning_rate=RATE_OF_LEARNING, warmup=0.0, weight_decay=0.01
    )
    state = initial_state(jax.tree.map(jnp.copy, params), optimizer)
    state, placed = sharding.replicate(state, mesh), sharding.put_batch(batch, mesh)
    keep = flags.keep
    if keep is None:
        size = flags.microbatch, flags.tokens, 2 * flags.documents
        keep = memory.most_kept(cache, state, *size)
    print(f"docjax keeps the activations of up to {keep} micro-batches")
    cache = dataclasses.replace(cache, keep=keep)
    step, key = make_step(cache, optimizer), jax.random.key(0)
    with tempfile.TemporaryDirectory() as folder:
        exported.write_params(Path(folder), encoder, params)
        config = bert.FAMILY.config({f: getattr(segment, f) for f in FIELDS})
        (Path(folder) / "config.json").write_text(json.dumps(config))
        step_of_torch, loss_of_torch = of_torch(
            folder, batch, params["head"]["dense"], flags
        )
    _, metrics, _ = cache.gradient(params, placed, None)
    losses = float(metrics["loss"]), loss_of_torch()
    print(f"loss: docjax {losses[0]:.5f}, torch {losses[1]:.5f}", flush=True)
    np.testing.assert_allclose(*losses, rtol=1e-4 if flags.dtype == "float32" else 0.01)

    def step_of_docjax() -> None:
        nonlocal state
        state, _ = step(state, placed, key)
        jax.block_until_ready(state)

    both = {"docjax": step_of_docjax, "torch": step_of_torch}
    for name, (taken,) in in_turns(both, 1).items():
        print(f"{name}: first step, with compilation, {taken:.1f} s", flush=True)
    seconds = in_turns(both, flags.repeats)
    medians = {name: statistics.median(run) for name, run in seconds.items()}
    ratio = medians["docjax"] / medians["torch"]
    print(f"{medians}, ratio {ratio:.2f}; all: {seconds}")


if __name__ == "__main__":
    main()
