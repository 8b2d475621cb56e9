"""Ctrl-C at random moments: is every stop one line, and is nothing lost?

  python -m benchmarks.interrupts [--stops 20] [--config NAME] [--seed 1]

Runs the training command, stops it after a random time, and runs it again in the same
folder; a run that has ended begins anew. Every stop must end with exit code 130, one last
line and no traceback; every run must end with the metrics of one that nobody stopped.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import tiny

ROOT = Path(__file__).resolve().parents[1]
FAULTS = "Traceback", "Exception ignored", "Error"


def run(config: str, folder: Path, seconds: float | None) -> tuple[int, str, float]:
    """Runs the command, stopped after `seconds`: exit code, standard error, duration."""
    command = [sys.executable, "-m", "docjax.main", f"--config={config}"]
    started = time.perf_counter()
    with subprocess.Popen(
        ["env", "--default-signal=SIGINT", *command, f"--workdir={folder}"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            asked = time.perf_counter()
            _, errors = process.communicate()
            return process.returncode, errors, time.perf_counter() - asked
    return process.returncode, errors, time.perf_counter() - started


def last_metrics(folder: Path) -> dict[str, float]:
    line = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    return {name: value for name, value in line.items() if "time/" not in name}


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", default="graph_roberta:smoke")
    parser.add_argument("--stops", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    flags = tiny.parse(parser, given, "--stops", 0)
    chance, faults = random.Random(flags.seed), 0
    with tempfile.TemporaryDirectory() as name:
        whole, stopped = Path(name, "whole"), Path(name, "stopped")
        code, errors, whole_s = run(flags.config, whole, None)
        assert code == 0, errors
        print(f"undisturbed: {whole_s:.0f} s", flush=True)
        stops = runs = differing = 0
        while stops < flags.stops or stopped.exists():
            after = chance.uniform(0.1, whole_s) if stops < flags.stops else None
            code, errors, took = run(flags.config, stopped, after)
            if code == 0:
                runs += 1
                differing += last_metrics(stopped) != last_metrics(whole)
                shutil.rmtree(stopped)
                continue
            if after is None:
                sys.exit(errors)
            stops += 1
            last = errors.splitlines()[-1:] or [""]
            bad = code != 130 or not last[0].startswith("stopped")
            bad |= any(fault in errors for fault in FAULTS)
            faults += bad
            print(f"after {after or 0:.1f} s: code {code} in {took:.1f} s: {last[0]}")
            print(errors if bad else "", end="", flush=True)
    found = {"stops": stops, "faults": faults, "runs": runs, "differing": differing}
    print(json.dumps(found))
    return int(faults > 0 or differing > 0)


if __name__ == "__main__":
    sys.exit(main())
