"""Do all shipped configs still train to the same numbers? Compares two versions.

Trains every config's variant `smoke` in a process of its own and encodes some
documents with the result:

  python -m benchmarks.smoke_runs runs/smoke_now
  python -m benchmarks.smoke_runs runs/smoke_now --before runs/smoke_before

With --before the command prints, for each config, the largest difference of a loss, a
metric and a vector from those of an earlier version, and exits with 1 if one differs.
Times are left out of the comparison. Prints JSON as its last line.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from docjax import config as config_lib

TEXTS = [
    f"The gradient of part {i} is clipped. A learning rate of {i} warms up. " * (1 + i)
    for i in range(8)
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--before", type=Path, help="the folder of an earlier version")
    parser.add_argument("--configs", nargs="+", default=list(config_lib.shipped()))
    flags = parser.parse_args()
    for name in flags.configs:
        _train(name, flags.folder / name)
        _encode(flags.folder / name)
    if not flags.before:
        return 0
    differences = {
        name: compared(flags.before / name, flags.folder / name)
        for name in flags.configs
    }
    for name, difference in differences.items():
        print(name, difference, file=sys.stderr)
    print(json.dumps(differences))
    return int(any(any(each.values()) for each in differences.values()))


def compared(before: Path, after: Path) -> dict[str, float]:
    """The largest difference of metrics and of vectors, and the metrics of one alone."""
    earlier, later = metrics(before), metrics(after)
    both = earlier.keys() & later.keys()
    vectors = [np.load(run / "smoke_vectors.npy") for run in (before, after)]
    return {
        "metrics": max((abs(earlier[key] - later[key]) for key in both), default=0.0),
        "vectors": float(np.abs(vectors[0] - vectors[1]).max()),
        "lost_metrics": len(earlier.keys() - later.keys()),
    }


def metrics(run: Path) -> dict[tuple[int, str], float]:
    """The losses and scores of a run by step and name, without times."""
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return {
        (line["step"], name): value
        for line in map(json.loads, lines)
        for name, value in line.items()
        if name.startswith(("train/", "eval/", "validation/", "judgement/", "data/"))
    }


def _train(name: str, run: Path) -> None:
    print(f"{name}:smoke", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "docjax.main", f"--config={name}:smoke"]
    subprocess.run([*command, f"--workdir={run}"], check=True, capture_output=True)


def _encode(run: Path) -> None:
    """Writes the vectors of TEXTS, in a process of its own."""
    code = (
        "import docjax, numpy, sys, json\n"
        "vectors = docjax.load(sys.argv[1]).encode(json.loads(sys.argv[2]))\n"
        "numpy.save(sys.argv[1] + '/smoke_vectors.npy', vectors)\n"
    )
    command = [sys.executable, "-c", code, str(run), json.dumps(TEXTS)]
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
