"""A step compiled for a TPU pod on a machine without one: memory, time, collectives.

    pip install libtpu==0.0.42   # the release that jax 0.10.2 names
    python benchmarks/compile_for_pods.py --topology v5e:2x4

Compiles the encoder of `configs/graph_roberta.py` with two layers and 32 segments a
device. For each program of a step this prints the memory of a device and the compiler's
estimate of seconds, by operation. Scatter and collectives have no estimate. The
benchmark fails if a pass over the segments has a collective, or if a step reduces the
gradient of a segment encoder more than once. The two programs of a search
(`docjax/retrieval/shortlist.py`) follow: 1,024 queries among vectors of 512 numbers.
The gradient of attention over long rows comes last, by Splash and by our own loop.

If libtpu is in another folder, set `TPU_LIBRARY_PATH=FOLDER/libtpu/libtpu.so`.
`--topology cpu` compiles for eight devices of a CPU, without libtpu: there are no
estimates of seconds and no kernels.
"""

import argparse
import collections
import contextlib
import importlib.util
import itertools
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from docjax import config as config_lib
from docjax.data.microbatches import round_up
from docjax.encoders.attention import KERNELS, attention
from docjax.encoders.document import fresh_params
from docjax.parts import named
from docjax.retrieval import shortlist
from docjax.training import memory, programs
from docjax.training.gradient_cache import GradientCache
from docjax.training.optimizer import adamw
from docjax.training.step import State, initial_state
from docjax.types import DOCUMENT, Batch, Graphs, Targets

ENVIRONMENT = dict(
    JAX_PLATFORMS="cpu",
    TPU_SKIP_MDS_QUERY="1",
    ALLOW_MULTIPLE_LIBTPU_LOAD="1",
    TPU_ACCELERATOR_TYPE="v5litepod-8",
    TPU_WORKER_HOSTNAMES="localhost",
    TPU_STDERR_LOG_LEVEL="3",
)
CPU = "cpu"  # the topology of this process
CLOCK = dict(v5e=1.5e9, v5p=1.75e9, v6e=1.75e9, cpu=1e9)  # cycles a second
LONG = (4096, 512), (8192, None)  # tokens of a row, and the window
PASSAGES, SEGMENTS = 28, 15_627  # of a view at most, and of 1,536 documents
COLLECTIVE = re.compile(
    r" = (.+?) (all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute)"
    r"(?:-start)?\("
)
# Parts of a program by words in the name of an operation, the first that fits.
PARTS = dict(
    products=("dot_general",),
    dropout=("xor", "shift", "bitcast_convert", "threefry", "shard_map/broadcast"),
    norms=("norm/",),
    attention=("attention/",),
    feed_forward=("feed_forward/",),
    embeddings=("embeddings/",),
)


class Setting(NamedTuple):
    """The input of the compiler: a gradient cache on the mesh of a pod, and shapes."""

    cache: GradientCache
    state: State
    rows: int  # of a micro-batch
    width: int

    def traces(self) -> dict[str, jax.stages.Traced]:
        """The programs of a step. Adapt this to the arguments of the gradient cache."""
        given = self.cache, self.state.params
        read = programs.microbatch_shape(self.rows, self.width)
        vector = programs.vector_shape(*given, read)
        count = round_up(-(-SEGMENTS // self.rows))
        vectors = jax.ShapeDtypeStruct((count, *vector.shape), vector.dtype)
        return {
            "encode": programs.encode(*given, read),
            "objective": programs.objective(*given, vectors, _batch()),
            "pull back": programs.pull_back(*given, read),
            "add up": programs.add_up(*given),
        }


class Report(NamedTuple):
    """The compiler's figures for one program."""

    bytes: int  # of a device
    cycles: dict[str, int]  # by part
    collectives: list[tuple[str, int]]  # kind, bytes


def library() -> str | None:
    """The path of libtpu; None if libtpu is missing."""
    if given := os.environ.get("TPU_LIBRARY_PATH"):
        return given if Path(given).is_file() else None
    package = importlib.util.find_spec("libtpu")
    return str(Path(package.origin).parent / "libtpu.so") if package else None


def setting(topology: str, layers: int, rows: int, width: int) -> Setting:
    """graph-roberta with `layers` layers; `rows` segments of a micro-batch a device."""
    node = named.plain(config_lib.load("graph_roberta"))
    node["encoder"]["segment"]["layers"] = layers
    encoder = named.build(node["encoder"])
    objective = named.build(node["objective"])
    devices = np.array(_devices(topology)).reshape(-1)
    mesh = Mesh(devices, ("data",), axis_types=(AxisType.Auto,))
    begin = lambda: initial_state(fresh_params(encoder, 0), adamw(1000))
    cache = GradientCache(encoder, objective, mesh, (DOCUMENT, DOCUMENT))
    return Setting(cache, jax.eval_shape(begin), rows * mesh.size, width)


def _devices(topology: str) -> Sequence[jax.Device]:
    if topology == CPU:
        with contextlib.suppress(
            RuntimeError
        ):  # JAX already runs and keeps its devices
            jax.config.update("jax_num_cpu_devices", 8)
        return jax.devices(CPU)
    return topologies.get_topology_desc(platform="tpu", topology_name=topology).devices


def _batch() -> Batch:
    """The halves of 1,536 documents and their graphs."""
    shape = lambda *sizes, dtype=jnp.int32: jax.ShapeDtypeStruct(sizes, dtype)
    rows = shape(2, 1536, PASSAGES)
    adjacency = shape(2, 1536, 1 + PASSAGES, 1 + PASSAGES, dtype=bool)
    places, targets = shape(2, 1536, PASSAGES, 2), Targets(shape(1536))
    return Batch((), rows, rows, places, Graphs(adjacency), targets)


def report(compiled: jax.stages.Compiled) -> Report:
    """The compiler's figures for a program."""
    hlo = compiled.as_text()
    cycles = collections.Counter()
    for line, times in _operations(hlo):
        if estimate := re.search(r'"estimated_cycles":"(\d+)"', line):
            cycles[_part(line)] += int(estimate[1]) * times
    found = [COLLECTIVE.search(line) for line in hlo.splitlines()]
    collectives = [(match[2], _bytes(match[1])) for match in found if match]
    return Report(memory.program_bytes(compiled), dict(cycles), collectives)


def _operations(hlo: str) -> Iterator[tuple[str, int]]:
    """The operations of a program, also inside loops, and how often each runs."""
    bodies, name = {}, None
    for line in hlo.splitlines():
        if head := re.match(r"(ENTRY )?%?([\w.\-]+) .*\{$", line):
            name = "ENTRY" if head[1] else head[2]
            bodies[name] = []
        elif name and line.startswith("  "):
            bodies[name].append(line)

    def walk(name: str, times: int) -> Iterator[tuple[str, int]]:
        for line in bodies.get(name, ()):
            yield line, times
            if loop := re.search(r" while\(.*body=%?([\w.\-]+)", line):
                trips = re.search(r'"known_trip_count":\{"n":"(\d+)"', line)
                yield from walk(loop[1], times * int(trips[1] if trips else 1))
            if call := re.search(r" call\(.*to_apply=%?([\w.\-]+)", line):
                yield from walk(call[1], times)

    return walk("ENTRY", 1)


def _part(line: str) -> str:
    name = re.search(r'op_name="([^"]*)"', line)
    for part, words in PARTS.items():
        if name and any(word in name[1] for word in words):
            return part
    return "other"


def _bytes(kind: str) -> int:
    """The bytes of an operation's results, `(f32[2,3]{1,0}, ...)`."""
    sizes = re.findall(r"([a-z]+)(\d+)\[([\d,]*)\]", kind)
    count = lambda dims: math.prod(map(int, filter(None, dims.split(","))))
    return sum(int(bits) // 8 * count(dims) for _, bits, dims in sizes)


def check(reports: dict[str, Report], state: State) -> None:
    """Asserts that a step has no needless communication."""
    for name in ("encode", "pull back"):
        assert not reports[name].collectives, (name, reports[name].collectives)
    kinds, sizes = zip(*reports["add up"].collectives, strict=True)
    gradient = memory.tree_bytes(state.params["segment"])
    assert set(kinds) == {"all-reduce"} and sum(sizes) == gradient, (kinds, sizes)


def search(mesh: Mesh) -> dict[str, jax.stages.Traced]:
    """The programs of a search: products of a block, and the best groups of blocks."""
    shape = lambda dtype, sizes, *axes: jax.ShapeDtypeStruct(
        sizes, dtype, sharding=NamedSharding(mesh, P(*axes))
    )
    queries = shape(jnp.bfloat16, (512, shortlist.QUERIES))
    block = shape(jnp.float32, (shortlist.ROWS, 512), "data")
    groups = shortlist.ROWS // shortlist.GROUP
    part = shape(jnp.float32, (shortlist.QUERIES, groups), None, "data")
    return {
        "products": shortlist._highest.trace(
            block, queries, shape(jnp.int32, ()), True
        ),
        "best": shortlist._best_groups.trace([part] * shortlist.CALLS, 175),
    }


def print_search(mesh: Mesh) -> None:
    for name, traced in search(mesh).items():
        found = report(traced.lower().compile())
        kinds = collections.Counter(kind for kind, _ in found.collectives)
        moved = sum(size for _, size in found.collectives) / 2**20
        print(f"search, {name:9} {found.bytes / 2**20:6.0f} MiB, collectives: "
              f"{dict(kinds) or 'none'}, {moved:.1f} MiB")  # fmt: skip
        assert name != "products" or not kinds, kinds


def print_attention(mesh: Mesh) -> None:
    """The gradient of windows and of long rows, by Splash and by our own loop."""
    rows = NamedSharding(mesh, P("data"))
    lengths = jax.ShapeDtypeStruct((mesh.size,), jnp.int32, sharding=rows)
    for (tokens, window), kernel in itertools.product(LONG, KERNELS):

        def total(*inputs: jax.Array, kernel=kernel, window=window) -> jax.Array:
            return attention(*inputs, window=window, kernel=kernel).sum()

        gradient = jax.shard_map(
            jax.grad(total, (0, 1, 2)),
            mesh=mesh,
            in_specs=P("data"),
            out_specs=P("data"),
            check_vma=False,
        )
        shape = mesh.size, tokens, 12, 64
        x = jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=rows)
        compiled = jax.jit(gradient).lower(x, x, x, lengths).compile()
        count = compiled.as_text().count('"tpu_custom_call"')
        print(f"attention {kernel:4} {tokens} tokens, window {window}: {count} kernels, "
              f"{memory.program_bytes(compiled) / 2**20:.0f} MiB")  # fmt: skip
        has_kernels = kernel == "auto" and mesh.devices.flat[0].platform == "tpu"
        assert bool(count) == has_kernels, (kernel, count)


def compile_and_print(flags: argparse.Namespace) -> None:
    one = setting(flags.topology, flags.layers, flags.rows, flags.width)
    clock, reports = CLOCK[flags.topology.split(":")[0]], {}
    print(f"{flags.topology}: {one.cache.mesh.size} devices, {flags.layers} layers, "
          f"micro-batches of {one.rows} x {one.width} tokens")  # fmt: skip
    for name, traced in one.traces().items():
        found = reports[name] = report(traced.lower().compile())
        total = max(1, sum(found.cycles.values()))
        shares = sorted(found.cycles.items(), key=lambda pair: -pair[1])
        kinds = collections.Counter(kind for kind, _ in found.collectives)
        moved = sum(size for _, size in found.collectives) / 2**20
        print(f"{name:10} {found.bytes / 2**20:6.0f} MiB  {total / clock * 1e3:7.2f} ms  "
              + ", ".join(f"{part} {share / total:.0%}" for part, share in shares))  # fmt: skip
        print(f"{'':10} collectives: {dict(kinds) or 'none'}, {moved:.1f} MiB")
    read = programs.microbatch_shape(one.rows, one.width)
    held = memory.held_bytes(one.cache, one.state, read, SEGMENTS)
    whole = (held + reports["pull back"].bytes) / 2**30
    print(f"a step needs {whole:.2f} GiB of a device")
    check(reports, one.state)
    print("no collective in encode and pull back, one reduction of gradients a step")
    print_search(one.cache.mesh)
    print_attention(one.cache.mesh)


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topology", default="v5e:2x4")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--rows", type=int, default=32, help="segments of a device")
    parser.add_argument("--width", type=int, default=136, help="tokens of a segment")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--tiny", action="store_true", help="smallest sizes, on a CPU")
    flags = parser.parse_args(given)
    if flags.tiny:
        flags.topology, flags.layers, flags.rows, flags.width = CPU, 1, 1, 16
    if flags.inside or flags.topology == CPU:
        compile_and_print(flags)
        return 0
    if (found := library()) is None:
        print("skipped: libtpu is not installed; pip install libtpu==0.0.42")
        return 0
    # libtpu reads its environment once, when jax is imported: so in a process of its own.
    environment = os.environ | ENVIRONMENT | {"TPU_LIBRARY_PATH": found}
    command = [sys.executable, *sys.argv, "--inside"]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
