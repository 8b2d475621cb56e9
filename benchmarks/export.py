"""Do the models of all configs give the same vectors in all libraries?

    python -m benchmarks.export
    python -m benchmarks.export --runs runs/colde

Trains each config's variant `smoke`, or takes runs that have ended, and exports them. Compares the vectors of 20
texts of 1 to 20,000 words (docstrings): those of the trained run against those of the
exported folder in docjax, transformers (segment vectors) and sentence-transformers. The
export refuses differences above 1e-4. Prints a Markdown table; takes minutes on 2
cores.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import docjax
from benchmarks import tiny
from docjax import config as config_lib
from docjax.data.records import full_text
from docjax.data.sources.jsonl import jsonl
from docjax.data.sources.pydocs import pydocs
from docjax.export.libraries import is_stock
from docjax.export.write import export
from docjax.types import Document, Section

CONFIGS = sorted(config_lib.shipped())
PEER = "sentence-transformers"
LIBRARIES = ("docjax", "transformers", PEER, f"{PEER}, queries")


def documents(flags: argparse.Namespace) -> list[Document]:
    """Texts of 1 to `--words` words, each longer than the one before."""
    source = jsonl(str(tiny.documents())) if flags.tiny else pydocs()
    words = " ".join(map(full_text, source)).split(" ")
    lengths = np.geomspace(1, flags.words, flags.documents).round().astype(int)
    texts = [" ".join(words[start:][:length]) for start, length in enumerate(lengths)]
    return [Document(str(i), (Section("", text),)) for i, text in enumerate(texts)]


def row(name: str, run: Path, texts: list[Document], folder: Path) -> list[str]:
    """Exports and compares one run."""
    out = export(run, folder / "exported" / run.name, texts)
    measured = json.loads((out / "docjax.json").read_text())["measured"]["differences"]
    _, stats = docjax.load(out).encode(texts, return_stats=True)
    modules = [m["type"] for m in json.loads((out / "modules.json").read_text())]
    return [
        name,
        ", ".join(kind.rpartition(".")[2] for kind in modules),
        "no" if is_stock(out) else "yes",
        *(f"{measured[x]:.1e}" if x in measured else "-" for x in LIBRARIES),
        f"{stats['segments']:,} ({stats['tokens']:,})",
        f"{stats['segments_cut']:,} ({stats['tokens_cut']:,})",
    ]


def trained(name: str, variant: str, folder: Path) -> Path:
    """The run of a config."""
    run = folder / name
    docjax.train(config_lib.load(name, variant=variant), run)
    return run


def table(rows: Iterator[list[str]]) -> Iterator[str]:
    head = [
        "config",
        "modules",
        "own code",
        *LIBRARIES,
        "segments (tokens) read",
        "cut",
    ]
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for cells in rows:
        yield f"| {' | '.join(cells)} |"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--configs", nargs="+", default=CONFIGS, choices=CONFIGS)
    parser.add_argument("--variant", default="smoke")
    parser.add_argument("--runs", nargs="+", type=Path, help="in place of configs")
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--words", type=int, default=20_000, help="of the longest")
    sizes = "--configs", "deca_bert", "--documents", 3, "--words", 50
    flags = tiny.parse(parser, given, *sizes)
    texts = documents(flags)
    with tempfile.TemporaryDirectory() as place:
        runs = ((run.name, run) for run in flags.runs or ())
        if not flags.runs:
            made = (trained(n, flags.variant, Path(place)) for n in flags.configs)
            runs = ((f"{run.name}:{flags.variant}", run) for run in made)
        for line in table(row(*each, texts, Path(place)) for each in runs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
