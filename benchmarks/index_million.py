"""`docjax index` of a million short documents, with kills, and `docjax search` in it.

    python -m benchmarks.index_million --folder runs/index

A transformer of one layer of width 32 with random parameters reads documents of 10 to
30 words, drawn by Zipf's law. One process makes an index of a tenth of the documents,
and one makes an index of all without a stop. SIGKILL ends five others: one during the
check, two during the encoding, one while texts are written, and one while words are
counted. A sixth finishes. Both folders are compared file by file. Then `docjax search`
answers from both folders; the clock starts after the imports. Prints Markdown tables:
memory is the most that a process had until a stage ended. Fails if a file or an answer
differs, if memory is over 5 % above that of a tenth, or if the first answer to a query
takes over 2 seconds.
"""

import argparse
import itertools
import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import tiny
from docjax.model.encode_file import DOCUMENTS
from docjax.retrieval import index_files
from docjax.storage.digest import digest

AT_ONCE = 10_000  # documents that are made up at once
WORDS = (10, 30)
QUERY_WORDS = (2, 6)
QUERIES = (1, 100)
SYSTEMS = ("dense", "bm25", "fused")
STAGES = ("check", "first tenth", "encode", "texts", "words")
KILLS = (
    *(("check", 0.5), ("encode", 1 / 3), ("encode", 2 / 3)),
    *(("texts", 0.5), ("words", 0.5)),
)
GROWTH, SECONDS = 0.05, 2  # the bars
SEARCH = """
import json, sys, time
began = time.perf_counter()
import bm25s, flax, jax, numpy, scipy, Stemmer, tokenizers
import docjax, docjax.cli, docjax.model.search
from docjax.commands import search
from docjax.model import document_model, encode_file, load
from docjax.retrieval import index_folder, trec
started, worked = time.perf_counter(), time.process_time()
code = docjax.cli.main(["search", *sys.argv[1:]])
seconds = time.perf_counter() - started
facts = {"imports": started - began, "seconds": seconds}
facts |= {"worked": time.process_time() - worked}
lines = [line.split() for line in open("/proc/self/status")]
memory = {line[0]: int(line[1]) for line in lines if line[0].startswith(("VmH", "Rss"))}
print(json.dumps(facts | memory))
sys.exit(code)
"""


class Made(NamedTuple):
    """One process of `docjax index`, at the end of each stage."""

    ends: dict[str, float]  # seconds from the start
    memory: dict[str, int]  # the most so far, in MiB

    def most(self) -> int:
        return max(self.memory.values())


class Searched(NamedTuple):
    """One process of `docjax search`."""

    imports: float  # seconds
    seconds: float  # after the imports
    worked: float  # seconds of all cores, after the imports
    memory: int  # the most, in MiB
    own: int  # without the pages of mapped files, in MiB
    answer: bytes


def texts(count: int, words: tuple[int, int], seed: int) -> Iterator[str]:
    """Texts of some words; the word of rank r has a frequency of about 1 / r."""
    known, generator = np.array(tiny.vocabulary()), np.random.default_rng(seed)
    ends = np.cumsum(1 / (np.arange(len(known)) + 2.7))
    for start in range(0, count, AT_ONCE):
        lengths = generator.integers(*words, min(AT_ONCE, count - start), endpoint=True)
        places = np.searchsorted(ends, generator.random(lengths.sum()) * ends[-1])
        for chosen in np.split(places, np.cumsum(lengths)[:-1]):
            yield " ".join(known[chosen])


def write_lines(path: Path, name: str, count: int, *rest) -> None:
    with path.open("w", encoding="utf-8") as lines:
        for number, text in enumerate(texts(count, *rest)):
            lines.write(json.dumps({"id": f"{name}-{number}", "text": text}) + "\n")


def stage_of(output: Path, shards: int) -> str:
    """What `docjax index` does, from the files that are there."""
    if (output / index_files.WORDS).exists():
        return "words"
    if (output / index_files.VECTORS).exists():
        return "texts"
    if not (output / f"{index_files.VECTORS}.shards/plan.json").exists():
        return "check"
    return "first tenth" if sealed(output) < shards / 10 else "encode"


def sealed(output: Path) -> int:
    return len(list(output.glob(f"{index_files.VECTORS}.shards/[0-9]*.json")))


def most_memory(process: int) -> int:
    """The most memory that a process has had, in MiB; 0 if it is gone."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return sum(int(line.split()[1]) >> 10 for line in lines if "VmHWM" in line)


def make_here(corpus: Path, output: Path, shards: int) -> Made:
    """Runs `docjax index` in this process; its last stage stands for all."""
    from docjax import cli  # later, because it makes this process large

    began = time.monotonic()
    model = str(tiny.checkpoint())
    code = cli.main(["index", model, str(corpus), "--output", str(output)])
    assert code == 0, code
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return Made({STAGES[-1]: time.monotonic() - began}, {STAGES[-1]: memory})


def make(
    corpus: Path,
    output: Path,
    shards: int,
    kill: tuple[str, float, int] | None = None,
) -> Made:
    """Runs `docjax index`; `kill`: in this stage, after seconds of it and shards."""
    command = [sys.executable, "-m", "docjax.cli", "index", str(tiny.checkpoint())]
    process = subprocess.Popen(
        [*command, str(corpus), "--output", str(output)], stdout=subprocess.DEVNULL
    )
    started = time.monotonic()
    begins, ends, memory = {}, {}, {}
    while process.poll() is None:
        stage, now = stage_of(output, shards), time.monotonic() - started
        begins.setdefault(stage, now)
        ends[stage] = now
        memory[stage] = max(memory.get(stage, 0), most_memory(process.pid))
        late = kill and stage == kill[0] and now - begins[stage] >= kill[1]
        if late and sealed(output) >= kill[2]:
            process.send_signal(signal.SIGKILL)
            process.wait()
        time.sleep(0.02)
    if process.returncode != (-signal.SIGKILL if kill else 0):
        sys.exit(f"docjax index ended with code {process.returncode}")
    return Made(ends, memory)


def make_all(folder: Path, documents: int, is_tiny: bool) -> bool:
    """Makes all indexes, prints each process as a row; whether memory is flat.

    With --tiny nothing is killed, and this process makes them.
    """
    whole, kills = (make_here, ()) if is_tiny else (make, KILLS)
    print(f"| run | seconds | {' | '.join(f'MiB, {s}' for s in STAGES)} |")
    print("|---" * (2 + len(STAGES)) + "|")
    shards = -(-documents // DOCUMENTS)
    few = whole(folder / "few.jsonl", folder / "few", -(-shards // 10))
    print_made(f"{documents // 10:,} documents", few)
    corpus = folder / "corpus.jsonl"
    made = [whole(corpus, folder / "whole", shards)]
    print_made(f"{documents:,} documents", made[0])
    ends, killed = made[0].ends, folder / "killed"
    begins = dict(zip(STAGES, [0, *ends.values()]))
    for stage, share in kills:
        wait = share * (ends[stage] - begins[stage]) if stage != "encode" else 0
        least = int(share * shards) if stage == "encode" else 0
        made.append(make(corpus, killed, shards, (stage, wait, least)))
        print_made(f"killed in {stage}, {sealed(killed)} shards", made[-1])
    made.append(whole(corpus, killed, shards))
    print_made("last", made[-1])
    growth = max(each.most() for each in made) / few.most() - 1
    rate = documents / max(ends.values())
    print(f"\n{rate:,.0f} documents/s without a stop; memory {growth:+.1%}\n")
    return is_tiny or growth <= GROWTH


def print_made(name: str, made: Made) -> None:
    memory = " | ".join(str(made.memory.get(stage, "")) for stage in STAGES)
    print(f"| {name} | {max(made.ends.values()):.0f} | {memory} |", flush=True)


def compare_files(whole: Path, killed: Path) -> bool:
    """Prints the files of two indexes; whether all are equal."""
    print("| file | MiB | the same bytes |\n|---|---|---|")
    names = {
        path.relative_to(folder): path.is_file()
        for folder in (whole, killed)
        for path in sorted(folder.rglob("*"))
    }
    same = []
    for name in (name for name, is_file in names.items() if is_file):
        both = [folder / name for folder in (whole, killed)]
        there = all(path.exists() for path in both)
        same.append(there and digest(both[0]) == digest(both[1]))
        size = max(path.stat().st_size for path in both if path.exists()) / 2**20
        print(f"| {name} | {size:.1f} | {'yes' if same[-1] else 'NO'} |")
    return all(same)


def search(folder: Path, index: str, system: str, count: int) -> Searched:
    """Runs `docjax search` in a process of its own."""
    queries, run = folder / f"queries-{count}.jsonl", folder / "out.trec"
    options = ["--queries", queries, "--run", run, "--system", system]
    command = [
        sys.executable,
        "-c",
        SEARCH,
        tiny.checkpoint(),
        folder / index,
        *options,
    ]
    done = subprocess.run(
        [str(part) for part in command], stdout=subprocess.PIPE, check=True
    )
    facts = json.loads(done.stdout.splitlines()[-1])
    own, most = facts["RssAnon:"] >> 10, facts["VmHWM:"] >> 10
    times = (facts[name] for name in ("imports", "seconds", "worked"))
    return Searched(*times, most, own, run.read_bytes())


def search_all(folder: Path, flags: argparse.Namespace) -> bool:
    """Whether both indexes give the same answers, the first in time; prints rows."""
    print(
        "\n| system | queries | imports, s | after imports, s | of all cores, s "
        "| most MiB | own MiB | the same answers |\n" + "|---" * 8 + "|"
    )
    holds = True
    for count, system in itertools.product(flags.queries, flags.systems):
        path = folder / f"queries-{count}.jsonl"
        write_lines(path, "query", count, QUERY_WORDS, 1)
        found = [search(folder, "killed", system, count) for _ in range(flags.rounds)]
        median = sorted(found, key=lambda each: each.seconds)[flags.rounds // 2]
        found.append(search(folder, "whole", system, count))
        same = all(each.answer == median.answer for each in found) and median.answer
        print(
            f"| {system} | {count} | {median.imports:.2f} | {median.seconds:.2f} | "
            f"{median.worked:.2f} | {median.memory} | {median.own} | "
            f"{'yes' if same else 'NO'} |",
            flush=True,
        )
        holds = (
            holds
            and bool(same)
            and (flags.tiny or count > 1 or median.seconds <= SECONDS)
        )
    return holds


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--queries", nargs="+", type=int, default=QUERIES)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--rounds", type=int, default=3, help="the median counts")
    sizes = "--folder", tiny.workdir, "--documents", 40, "--queries", 1
    sizes += "--systems", "fused", "--rounds", 1
    flags = tiny.parse(parser, given, *sizes)
    folder = flags.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, count in (("few", flags.documents // 10), ("corpus", flags.documents)):
        write_lines(folder / f"{name}.jsonl", "document", count, WORDS, 0)
    is_flat = make_all(folder, flags.documents, flags.tiny)
    same = compare_files(folder / "whole", folder / "killed")
    answers = search_all(folder, flags)
    return 0 if is_flat and same and answers else 1


if __name__ == "__main__":
    sys.exit(main())
