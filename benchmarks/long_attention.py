"""Time and memory of the encoders of long segments against Hugging Face torch.

    python -m benchmarks.long_attention
    python -m benchmarks.long_attention --gpu --rows 4

`--rows` of random tokens, the base shape with `--layers` layers, float32, both libraries
on the same `--cores`. docjax and torch take turns; times are CPU seconds, the least of
`--repeats`, so that other work on the machine counts little. "x2" is the figure over
that of half the length. With `--memory` the figures are not times but MiB: the highest
resident memory of a first run above that before it. Every run is checked against
torch's result: hidden states, or one gradient. With `--gpu` both use an NVIDIA GPU, in
bfloat16, and times are seconds; torch takes the attention that transformers chooses.
"""

import argparse
import ctypes
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import tiny
from benchmarks.turns import in_turns

LENGTHS = (512, 1024, 2048, 4096, 8192)
PASSES = ("forward", "forward+backward")
WIDTH, VOCABULARY = 768, 1000
SHARED = dict(vocab_size=VOCABULARY, hidden_size=WIDTH, num_attention_heads=12)


class Family(NamedTuple):
    config: str  # the class in transformers
    keywords: dict[str, Any]
    kernel: str  # a tensor whose gradient is compared
    global_mask: bool = False  # torch needs a mask for the first token
    blocks: bool = False  # torch attends to all tokens after a short text, until told


FAMILIES = {
    "longformer": Family(
        "LongformerConfig",
        dict(
            intermediate_size=3072,
            max_position_embeddings=LENGTHS[-1] + 2,
            type_vocab_size=1,
            attention_probs_dropout_prob=0.0,
            hidden_dropout_prob=0.0,
        ),
        "encoder.layer.0.attention.self.key.weight",
        global_mask=True,
    ),
    "bigbird": Family(
        "BigBirdConfig",
        dict(intermediate_size=3072, max_position_embeddings=LENGTHS[-1]),
        "encoder.layer.0.attention.self.key.weight",
        blocks=True,
    ),
    "modernbert": Family(
        "ModernBertConfig",
        dict(
            intermediate_size=1152,
            max_position_embeddings=LENGTHS[-1],
            **{f"{name}_token_id": 0 for name in ("pad", "bos", "eos", "cls", "sep")},
        ),
        "layers.0.attn.Wqkv.weight",
    ),
}
Run = Callable[[], Any]


def torch_runs(family: Family, model: Any, ids: Any, weigh: Any) -> dict[str, Run]:
    """Hidden states, and the gradient of their weighted sum, by pass."""
    import torch

    tokens, weight = (torch.as_tensor(x).to(model.device) for x in (ids, weigh))

    def finished(result: Any) -> Any:
        if model.device.type == "cuda":
            torch.cuda.synchronize()
        return result

    masks = {"attention_mask": torch.ones_like(tokens)}
    if family.global_mask:
        first = torch.zeros_like(tokens)
        first[:, 0] = 1
        masks["global_attention_mask"] = first

    def states() -> Any:
        if family.blocks:
            model.set_attention_type("block_sparse")
        return model(tokens, **masks).last_hidden_state

    def forward() -> Any:
        with torch.inference_mode():
            return finished(states())

    def backward() -> Any:
        model.zero_grad()
        (states() * weight).sum().backward()
        return finished(model.get_parameter(family.kernel).grad.T)

    return dict(zip(PASSES, (forward, backward), strict=True))


def docjax_runs(
    family: Family, encoder: Any, params: Any, path: str, ids: Any, weigh: Any
) -> dict[str, Run]:
    """The same in docjax; compiled here."""
    import jax
    import jax.numpy as jnp
    from flax.traverse_util import flatten_dict

    given = jnp.asarray(ids, jnp.int32), jnp.full(len(ids), ids.shape[1])
    states = lambda p: encoder.apply({"params": p}, *given, method="hidden_states")
    loss = lambda p: (states(p) * weigh).sum()
    forward, gradient = (
        jax.jit(f).lower(params).compile() for f in (states, jax.grad(loss))
    )

    def backward() -> Any:
        found = jax.block_until_ready(gradient(params))
        return flatten_dict(found, sep="/")[path]

    states_of = lambda: jax.block_until_ready(forward(params))
    return dict(zip(PASSES, (states_of, backward), strict=True))


def peak(run: Run) -> tuple[Any, float]:
    """The result of a first run, and its highest resident memory above that before it.

    In MiB. Later runs use memory again that the first one has freed; what runs before
    have freed goes back to the system.
    """
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # forgets the highest so far
    before = _resident("VmRSS")
    result = run()
    return result, (_resident("VmHWM") - before) / 1024


def _resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(x.split()[1]) for x in lines if x.startswith(name))


def host(result: Any) -> Any:
    """An array of torch or JAX as a float32 array of NumPy."""
    import numpy as np

    array = result.float().cpu().numpy() if hasattr(result, "cpu") else result
    return np.asarray(array, np.float32)


def measure(name: str, flags: argparse.Namespace) -> None:
    """Prints the table of one family."""
    import jax.numpy as jnp
    import numpy as np
    import torch
    import transformers
    from flax.traverse_util import unflatten_dict

    from docjax.huggingface import names
    from docjax.huggingface.family import family_of_config
    from docjax.training import memory

    if not flags.memory:
        memory.keep_freed()  # as training does; torch gains from it as well
    torch.manual_seed(0)
    torch.set_num_threads(flags.cores)
    spec = FAMILIES[name]
    keywords = SHARED | spec.keywords | {"num_hidden_layers": flags.layers}
    config = getattr(transformers, spec.config)(**keywords)
    model = transformers.AutoModel.from_config(config).eval()
    family = family_of_config(config.to_dict(), name)
    of_gpu = {"dtype": "bfloat16"} if flags.gpu else {}
    encoder = family.module(**family.to_keywords(config.to_dict(), name), **of_gpu)
    state, table = model.state_dict(), family.table(encoder)
    flat = {path: names.swap(path, state[n].numpy()) for path, n in table.items()}
    params = unflatten_dict({p: jnp.asarray(x) for p, x in flat.items()}, sep="/")
    path = next(path for path, tensor in table.items() if tensor == spec.kernel)
    if flags.gpu:
        model = model.to("cuda", torch.bfloat16)
    before: dict[str, dict[str, float]] = {}
    for length in flags.lengths:
        generator = np.random.default_rng(0)
        ids = generator.integers(5, VOCABULARY, (flags.rows, length))
        weigh = generator.normal(size=(*ids.shape, WIDTH)).astype(np.float32)
        theirs = torch_runs(spec, model, ids, weigh)
        ours = docjax_runs(spec, encoder, params, path, ids, weigh)
        for kind in PASSES:
            runs = {"docjax": ours[kind], "torch": theirs[kind]}
            first = {library: peak(run) for library, run in runs.items()}
            got, expected = (host(result) for result, _ in first.values())
            error = np.abs(got - expected).max() / np.abs(expected).max()
            if error > (0.1 if flags.gpu else 1e-4):
                raise AssertionError(f"{name} {kind} at {length}: {error:.1e}")
            figures = {library: mib for library, (_, mib) in first.items()}
            if not flags.memory:
                clock = time.perf_counter if flags.gpu else time.process_time
                times = in_turns(runs, flags.repeats, clock)
                figures = {library: min(taken) for library, taken in times.items()}
            nothing = dict.fromkeys(runs, float("nan"))
            growth = {
                library: figure / before.get(kind, nothing)[library]
                for library, figure in figures.items()
            }
            before[kind] = figures
            digits = 0 if flags.memory else 4 if flags.gpu else 3
            print(
                f"| {name} | {kind} | {length:,} | {figures['docjax']:.{digits}f} | "
                f"{figures['torch']:.{digits}f} | "
                f"{figures['docjax'] / figures['torch']:.2f} | "
                f"{growth['docjax']:.2f} | {growth['torch']:.2f} | {error:.0e} |",
                flush=True,
            )


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument("--lengths", nargs="+", type=int, default=list(LENGTHS))
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    sizes = "--families", "modernbert", "--lengths", 32, "--layers", 1, "--repeats", 1
    flags = tiny.parse(parser, given, *sizes)
    if flags.gpu and flags.memory:
        parser.error("--memory is the memory of the machine: leave out --gpu")
    if not flags.gpu:  # before jax and torch count the cores
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-flags.cores :])
    unit = "MiB" if flags.memory else "s"
    print(
        f"| family | pass | tokens | docjax {unit} | torch {unit} | ratio | docjax x2 "
        "| torch x2 | largest relative difference |\n" + "|---" * 9 + "|"
    )
    for name in flags.families:
        measure(name, flags)


if __name__ == "__main__":
    main()
