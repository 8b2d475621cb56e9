"""`docjax search`: the documents nearest to each query, exactly, as a TREC run.

The corpus is read once, in memory that stays flat. The counts are printed as one line
of JSON. "-" is standard input or output.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import docjax
from docjax.data.documents import full_text
from docjax.data.sources.jsonl import jsonl
from docjax.errors import UserError
from docjax.model.encode_file import check_output
from docjax.model.search import TOP, search
from docjax.retrieval import trec
from docjax.types import Document

HELP = "the documents nearest to each query"
EXAMPLE = "docjax search runs/demo corpus.jsonl --queries queries.jsonl --run out.trec"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a run, or a Hugging Face folder or name")
    parser.add_argument("corpus", help="JSON lines, also .gz, .xz, .zst, or -")
    parser.add_argument("--queries", required=True, help="JSON lines")
    parser.add_argument("--run", required=True, metavar="OUT.trec", help="or -")
    parser.add_argument("--top", type=int, default=TOP, help="documents a query")
    parser.add_argument(
        "--max-bad-fraction",
        type=float,
        default=0.0,
        help="bad documents that may be left out, as a share of all",
    )


def run(flags: argparse.Namespace) -> None:
    if flags.top < 1:
        raise UserError(f"--top {flags.top}: at least 1 is needed")
    if flags.queries == flags.corpus == "-":
        raise UserError("queries and corpus are both standard input: name a file")
    check_output("--run", flags.run)
    if flags.run != "-" and not Path(flags.run).parent.is_dir():
        raise UserError(f"{flags.run}: cannot be written (there is no such folder)")
    queries = {one.id: full_text(one) for one in _named(jsonl(flags.queries))}
    model = docjax.load(flags.model)
    counts: dict[str, Any] = {"queries": len(queries)}
    report: Counter = Counter()
    documents = _named(jsonl(flags.corpus, flags.max_bad_fraction, report))
    found = search(model, documents, queries, counts, flags.top)
    if flags.run == "-":
        sys.stdout.writelines(trec.lines(found, "docjax"))
    else:
        trec.write(found, Path(flags.run), "docjax")
    del report["documents"]
    to = sys.stderr if flags.run == "-" else sys.stdout
    print(json.dumps(counts | {"left_out": report}), file=to)


def _named(documents: Iterable[Document]) -> Iterator[Document]:
    """The documents; an id that a TREC run cannot hold is refused when it is read."""
    for document in documents:
        trec.check_id(document.id)
        yield document
