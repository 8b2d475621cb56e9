"""Does a run on a full disk end with one line, and resume when there is room?

    python -m benchmarks.full_disk [--sizes 20]     (as root: it mounts file systems)

Trains configs/graph_roberta.py:smoke once undisturbed, then on file systems in memory
of several sizes that are too small, and on a read-only file system. A run must print
one line beside its progress and no traceback, and must end with exit code 2 at most a
minute later than the undisturbed run. Then the file system grows: the same command must
end with the parameters of the undisturbed run. The exit code is 1 if a run fails a bar.
The runs share XLA's compiled programs.
"""

import argparse
import contextlib
import functools
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

import docjax
from benchmarks import tiny

ROOT = Path(__file__).resolve().parents[1]
LATE = 60.0  # seconds more than the undisturbed run
SMALLEST, LARGEST = 0.002, 0.92  # of what the undisturbed run leaves on the disk
ERROR = re.compile(r"UserError|error|warning|Traceback")  # how an error's line begins


class Outcome(NamedTuple):
    """How one run ended."""

    code: int
    seconds: float
    errors: list[str]  # lines of standard error beside the progress


Train = Callable[[Path], Outcome]


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, default=20, help="file systems to fill")
    parser.add_argument("--config", default="graph_roberta:smoke")
    flags = tiny.parse(parser, given, "--sizes", 0, "--config", "deca:smoke")
    with tempfile.TemporaryDirectory() as folder:
        compiled = {
            "JAX_COMPILATION_CACHE_DIR": f"{folder}/compiled",
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        train = functools.partial(run, flags.config, os.environ | compiled)
        if flags.tiny:
            train = functools.partial(run_here, flags.config)
        whole = Path(folder) / "whole"
        undisturbed = train(whole)
        assert undisturbed.code == 0, undisturbed.errors
        expected = sha256(whole)
        print(f"undisturbed: {undisturbed.seconds:.0f} s, {used(whole):,} bytes")
        print("| KiB | exit | seconds | lines | again | error |\n" + "|---" * 6 + "|")
        limit = undisturbed.seconds + LATE
        sizes = np.linspace(SMALLEST, LARGEST, flags.sizes) * used(whole)
        good = [full(train, int(size), expected, limit) for size in sizes]
        if not flags.tiny:  # nothing is mounted
            good.append(read_only(train, limit))
    print(f"{sum(good)} of {len(good)} as they should be")
    return 0 if all(good) else 1


def full(train: Train, size: int, expected: str, limit: float) -> bool:
    """Trains in `size` bytes, gives room, and resumes; True if all is well."""
    with mounted(f"size={size}") as folder:
        outcome = train(folder / "run")
        mount("-o", "remount,size=1g", str(folder))
        again = train(folder / "run")
        same = again.code == 0 and sha256(folder / "run") == expected
        show(f"{size / 1024:.0f}", outcome, "same parameters" if same else again.errors)
        return is_one_line(outcome, limit) and same


def read_only(train: Train, limit: float) -> bool:
    """Trains on a read-only file system; True if the run ends as it should."""
    with mounted("size=1m,ro") as folder:
        outcome = train(folder / "run")
        show("read-only", outcome, "")
        return is_one_line(outcome, limit)


def is_one_line(outcome: Outcome, limit: float) -> bool:
    return outcome.code == 2 and len(outcome.errors) == 1 and outcome.seconds <= limit


def show(name: str, outcome: Outcome, again: object) -> None:
    lines = len(outcome.errors)
    last = outcome.errors[-1] if lines else ""
    cells = (name, outcome.code, f"{outcome.seconds:.0f}", lines, again, last)
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def run(config: str, environment: Mapping[str, str], folder: Path) -> Outcome:
    """Runs the training command."""
    started = time.perf_counter()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "docjax.main"),
            *(f"--config={config}", f"--workdir={folder}"),
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stderr.splitlines()
    first = next((n for n, line in enumerate(lines) if ERROR.match(line)), len(lines))
    errors = lines[first:]
    return Outcome(done.returncode, time.perf_counter() - started, errors)


def run_here(config: str, folder: Path) -> Outcome:
    """Trains in this process."""
    started = time.perf_counter()
    docjax.train(config, folder)
    return Outcome(0, time.perf_counter() - started, [])


@contextlib.contextmanager
def mounted(options: str) -> Iterator[Path]:
    """A file system in memory."""
    with tempfile.TemporaryDirectory() as name:
        mount("-t", "tmpfs", "-o", options, "docjax", name)
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", name], check=True)


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def used(folder: Path) -> int:
    """Bytes on the disk."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*"))


def sha256(run: Path) -> str:
    """The sha256 of a run's parameters and their names."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree.leaves_with_path(docjax.load(run).params):
        digest.update(jax.tree_util.keystr(path).encode())
        digest.update(np.asarray(leaf).tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
