"""Two checkouts of docjax train the same configs: do they give the same numbers?

    python -m benchmarks.before_after --before OLD_CHECKOUT --workdir W

Trains each config in the old checkout and in this checkout, and encodes the same
documents with both runs. Prints the largest differences of losses, metrics and vectors,
and whether the parameters are equal to the bit. Runs that the workdir already has are
not repeated. A difference is relative if the larger number is above 1.
"""

import argparse
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks import tiny
from docjax import config as config_lib

HERE = Path(__file__).resolve().parents[1]
CONFIGS = tuple(f"{name}:smoke" for name in config_lib.shipped())
SKIPPED = ("time/", "data/")  # metrics that say nothing of the result


def train(config: str, run: str, documents: str) -> None:
    """Trains a config; the run gets vectors.npy and the digest of the parameters.

    Another checkout runs the source of this function.
    """
    import hashlib
    import json

    import jax
    import numpy as np

    import docjax

    model = docjax.train(config, run)
    with open(documents, encoding="utf-8") as lines:
        vectors = model.encode([json.loads(line) for line in lines])
    np.save(f"{run}/vectors.npy", vectors)
    found = hashlib.sha256()
    for path, leaf in jax.tree.leaves_with_path(model.params):
        found.update(jax.tree_util.keystr(path).encode())
        found.update(np.asarray(leaf).tobytes())
    with open(f"{run}/vectors.sha256", "w") as file:
        file.write(found.hexdigest())


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--configs", nargs="*", default=CONFIGS)
    sizes = "--before", HERE, "--workdir", tiny.workdir, "--configs", "deca:smoke"
    flags = tiny.parse(parser, given, *sizes)
    documents = write_documents(flags.workdir / "documents.jsonl")
    print("| config | loss | metrics | vectors | parameters |\n" + "|---" * 5 + "|")
    for config in flags.configs:
        pair = [
            result(checkout.resolve(), config, flags, documents)
            for checkout in (flags.before, HERE)
        ]
        print(f"| {config} | {' | '.join(compared(*pair))} |", flush=True)


def write_documents(path: Path) -> Path:
    """Synthetic documents with sections, of 5 to 2,000 words."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    words = " ".join(Path(__file__).read_text("utf-8").split()).split(" ")
    draw = np.random.default_rng(0)
    lines = []
    for number, size in enumerate((5, 20, 60, 150, 400, 1000, 2000, 30)):
        chosen = [words[i] for i in draw.integers(len(words), size=size)]
        texts = [" ".join(part) + "." for part in np.array_split(chosen, 3)]
        sections = [{"heading": f"Part {i}", "text": t} for i, t in enumerate(texts)]
        record = {"id": str(number), "title": "A title", "sections": sections}
        lines.append(json.dumps(record) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def result(
    checkout: Path, config: str, flags: argparse.Namespace, documents: Path
) -> Path:
    """The run of a config, trained by the code of a checkout; with --tiny by this
    process."""
    side = "after" if checkout == HERE else "before"
    run = (flags.workdir / side / config.replace(":", "_")).absolute()
    if (run / "vectors.sha256").exists():
        return run
    asked = config, str(run), str(documents.absolute())
    if flags.tiny:
        train(*asked)
        return run
    environment = {"PYTHONPATH": str(checkout), "PYTHONWARNINGS": "ignore"}
    code = f"{inspect.getsource(train)}\nimport sys; train(*sys.argv[1:])"
    subprocess.run(
        [sys.executable, "-c", code, *asked],
        cwd=checkout,
        env=os.environ | environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return run


def compared(before: Path, after: Path) -> list[str]:
    """The largest differences, and whether the parameters are equal."""
    old, new = (metrics(run) for run in (before, after))
    missing = sorted(set(old) ^ set(new))
    losses, others = [0.0], [0.0]
    for key in set(old) & set(new):
        (losses if "loss" in key[1] else others).append(apart(old[key], new[key]))
    vectors = [np.load(run / "vectors.npy") for run in (before, after)]
    digests = [(run / "vectors.sha256").read_text() for run in (before, after)]
    lacking = f", only in one: {', '.join(name for _, name in missing)}" * bool(missing)
    return [
        f"{max(losses):.1e}",
        f"{max(others):.1e}{lacking}",
        f"{np.abs(vectors[0] - vectors[1]).max():.1e}",
        "equal" if digests[0] == digests[1] else "differ",
    ]


def metrics(run: Path) -> dict[tuple[int, str], float]:
    """Every logged number by step and name."""
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    return {
        (line["step"], name): value
        for line in map(json.loads, lines)
        for name, value in line.items()
        if name != "step" and not name.startswith(SKIPPED)
    }


def apart(one: float, other: float) -> float:
    return abs(one - other) / max(abs(one), abs(other), 1.0)


if __name__ == "__main__":
    main()
