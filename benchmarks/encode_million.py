"""`docjax encode` of a million short documents, with kills: equal rows, equal memory.

    python -m benchmarks.encode_million --folder runs/million

A transformer of one layer of width 32 with random parameters reads documents of 10 to
30 random words. Three runs, each in a process of its own: 10,000 documents; all
documents; all documents with SIGKILL at `--kills` random moments and a restart after
each. Prints a Markdown table. Fails if rows differ, or if memory is over 5 % above that
of 10,000 documents.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import tiny

SHARD = 4096  # documents, as in docjax/encode.py
WORDS = (10, 30)


def write_documents(path: Path, count: int) -> None:
    words, generator = tiny.vocabulary(), random.Random(0)
    with path.open("w", encoding="utf-8") as lines:
        for number in range(count):
            text = " ".join(generator.choices(words, k=generator.randint(*WORDS)))
            lines.write(json.dumps({"id": f"document-{number}", "text": text}) + "\n")


def start(documents: Path, output: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "docjax.cli", "encode", str(tiny.checkpoint())]
    return subprocess.Popen(
        [*command, str(documents), "--output", str(output)], stdout=subprocess.DEVNULL
    )


def encode(documents: Path, output: Path, is_tiny: bool) -> tuple[float, int]:
    """The seconds of `docjax encode`, and its peak memory in MiB.

    It has a process of its own, but with --tiny this process.
    """
    if not is_tiny:
        return finish(start(documents, output))
    from docjax import cli  # later, because it makes this process large

    began = time.monotonic()
    model = str(tiny.checkpoint())
    code = cli.main(["encode", model, str(documents), "--output", str(output)])
    assert code == 0, code
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return time.monotonic() - began, most >> 10


def finish(process: subprocess.Popen) -> tuple[float, int]:
    """The seconds until a process ends, and its peak memory in MiB.

    Linux includes the memory that this process had when it started the other.
    """
    began = time.monotonic()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, -signal.SIGKILL):
        sys.exit(f"docjax encode ended with code {process.returncode}")
    return time.monotonic() - began, usage.ru_maxrss >> 10


def killed(process: subprocess.Popen, output: Path, shards: int, wait: float) -> int:
    """Kills the process `wait` seconds after `shards` shards exist; its peak memory."""
    ended = partial(
        os.waitid, os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
    )
    while sealed(output) < shards and not ended():
        time.sleep(0.02)
    time.sleep(wait)
    os.kill(process.pid, signal.SIGKILL)
    memory = finish(process)[1]
    if process.returncode == 0:
        sys.exit("it was done before it could be killed")
    print(f"killed with {sealed(output)} shards", file=sys.stderr)
    return memory


def sealed(output: Path) -> int:
    return len(list(output.parent.glob(f"{output.name}.shards/[0-9]*.json")))


def digest(output: Path) -> str:
    found = hashlib.sha256()
    for path in (output, output.with_name(output.name + ".ids.jsonl")):
        with path.open("rb") as stream:
            found.update(hashlib.file_digest(stream, "sha256").digest())
    return found.hexdigest()


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=10_000, help="documents")
    parser.add_argument("--kills", type=int, default=5)
    sizes = "--folder", tiny.workdir, "--documents", 40, "--few", 20, "--kills", 0
    flags = tiny.parse(parser, given, *sizes)
    shutil.rmtree(flags.folder, ignore_errors=True)
    flags.folder.mkdir(parents=True)
    few, many = (flags.folder / name for name in ("few.jsonl", "many.jsonl"))
    write_documents(few, flags.few)
    write_documents(many, flags.documents)

    print("| run | documents | seconds | documents/s | most memory |")
    print("|---|---|---|---|---|")
    found = {}
    for name, path, count in (("few", few, flags.few), ("many", many, flags.documents)):
        output = flags.folder / f"{name}.npy"
        found[name] = seconds, memory = encode(path, output, flags.tiny)
        rate = f"{seconds:.0f} | {count / seconds:,.0f}"
        print(f"| without a stop | {count:,} | {rate} | {memory} MiB |", flush=True)

    output = flags.folder / "killed.npy"
    shards = -(-flags.documents // SHARD)
    longest = found["many"][0] / shards
    memories = []
    for goal in sorted(random.sample(range(1, shards - 1), flags.kills)):
        wait = random.uniform(0, longest)
        memories.append(killed(start(many, output), output, goal, wait))
    seconds, memory = encode(many, output, flags.tiny)
    memories.append(memory)
    print(
        f"| last after {flags.kills} kills | {flags.documents:,} | {seconds:.0f} | | "
        f"{max(memories)} MiB |"
    )
    growth = max(found["many"][1], *memories) / found["few"][1] - 1
    same = digest(output) == digest(flags.folder / "many.npy")
    print(f"\nrows {'equal' if same else 'DIFFER'}; memory {growth:+.1%}")
    return 1 if not same or growth > 0.05 and not flags.tiny else 0


if __name__ == "__main__":
    sys.exit(main())
