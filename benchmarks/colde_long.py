"""CoLDE on documents of 23,629 words: whether all text is read, time, and memory.

    python -m benchmarks.colde_long --data FOLDER --workdir runs/long

50 documents of 23,629 words in 8 sections, cut from ACL papers one after the other. All
50 are one batch of two views, of which training reads every token: no limit is set. The
encoder is that of `configs/colde.py:small`, from random weights, with the paper's
attention between sections and BiLSTM; --init gives a checkpoint in its place. Prints the
tokens of the texts and those that a step reads, which must be as many, the seconds of a step without
compilation, those of encoding the documents, and the most memory that the process had.
"""

import argparse
import itertools
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import docjax
from benchmarks import runs, tiny
from benchmarks.matching import acl_papers
from docjax import config as configs
from docjax.data.documents import to_line
from docjax.data.packing import padding
from docjax.progress import log
from docjax.run.fields import read
from docjax.run.prepare import prepare
from docjax.run.prepared import Prepared
from docjax.training.vector_trainer import training_batches
from docjax.types import Document, Section

SECTIONS = 8
MARKERS = 2  # of every chunk


def documents(
    papers: Iterator[Document], count: int, length: int
) -> Iterator[Document]:
    """Documents of exactly `length` words, each linked to its neighbour."""
    given = itertools.chain.from_iterable(paper.sections for paper in papers)
    words = itertools.chain.from_iterable(part.text.split() for part in given)
    for number in range(count):
        own = list(itertools.islice(words, length))
        if len(own) < length:
            raise SystemExit(f"the papers have words for {number} of {count} documents")
        cuts = [i * length // SECTIONS for i in range(SECTIONS + 1)]
        parts = (" ".join(own[a:b]) for a, b in itertools.pairwise(cuts))
        sections = tuple(Section(f"Part {i}", p) for i, p in enumerate(parts))
        yield Document(f"d{number}", sections, links=(f"d{number ^ 1}",))


def config_of(source: Path, count: int, init: str | None, microbatch: int):
    """One batch with all documents, and no limit."""
    config = configs.load("colde", variant="" if init else "small")
    config.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(source))
    config.init = init
    config.tasks = {}
    config.batch, config.microbatch = count, microbatch
    config.steps, config.epochs = 3, None
    config.log_every = 1
    config.limits.training_segments = None
    config.encoder.document.attention = "literal"
    return config


def counts(prepared: Prepared) -> tuple[int, int, int]:
    """The tokens of the texts, and the tokens and chunks that a step reads."""
    batch, _ = training_batches(prepared, None).dataset(1)[0]
    chunks = sum(int((each.lengths > 0).sum()) for each in batch.microbatches)
    read = padding(batch)[1] - MARKERS * chunks
    return len(prepared.corpus.tokens), read, chunks


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--count", type=int, default=50, help="documents")
    parser.add_argument("--init", help="a checkpoint; a small encoder without")
    parser.add_argument("--microbatch", type=int, default=16, help="chunks")
    parser.add_argument("--words", type=int, default=23_629, help="of a document")
    sizes = "--data", tiny.data, "--workdir", tiny.workdir, "--count", 4, "--words", 64
    flags = tiny.parse(parser, given, *sizes)
    log.install()
    flags.workdir.mkdir(parents=True, exist_ok=True)
    source, folder = flags.workdir / "long.jsonl", flags.workdir / "run"
    papers = acl_papers(flags.data)
    made = list(documents(papers, flags.count, flags.words))
    source.write_text("".join(to_line(each) + "\n" for each in made), "utf-8")
    config = config_of(source, flags.count, flags.init, flags.microbatch)
    lines = runs.trained(config, folder)
    seconds = [line["time/step_s"] for line in lines if "time/step_s" in line]
    tokens, of_step, chunks = counts(prepare(read(folder).to_json(), folder))
    began = time.perf_counter()
    docjax.load(folder).encode(made)
    encoding = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"tokens of the texts    {tokens:,}")
    print(f"tokens read by a step  {of_step:,}")
    print(f"chunks                 {chunks:,}")
    print(f"seconds of a step      {min(seconds):.1f}")
    print(f"seconds of encoding    {encoding:.1f} (with compilation)")
    print(f"most memory            {peak:.2f} GiB")
    return 0 if tokens == of_step else 1


if __name__ == "__main__":
    sys.exit(main())
