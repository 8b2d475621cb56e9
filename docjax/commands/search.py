"""`docjax search`: an exact search for the documents nearest to each query.

Writes a TREC run and prints the counts as one line of JSON. Reads the corpus once, so
memory does not grow with the corpus. "-" is standard input or output.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docjax
from docjax.errors import UserError

if TYPE_CHECKING:
    from docjax.types import Document

HELP = "the documents nearest to each query"
EXAMPLE = "docjax search runs/demo corpus.jsonl --queries queries.jsonl --run out.trec"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a run, or a Hugging Face folder or name")
    parser.add_argument("corpus", help="JSON lines, also .gz, .xz, .zst, or -")
    parser.add_argument("--queries", required=True, help="JSON lines")
    parser.add_argument("--run", required=True, metavar="OUT.trec", help="or -")
    parser.add_argument(
        "--top", type=int, default=1000, help="documents per query (%(default)s)"
    )
    parser.add_argument(
        "--max-bad-fraction",
        type=float,
        default=0.0,
        help="bad documents that may be left out, as a share of all",
    )


def run(flags: argparse.Namespace) -> None:
    from docjax.data.documents import full_text
    from docjax.data.sources.jsonl import jsonl
    from docjax.model.encode_file import check_output
    from docjax.model.search import search
    from docjax.retrieval import trec

    if flags.top < 1:
        raise UserError(f"--top {flags.top} is too small; give at least 1")
    if flags.queries == flags.corpus == "-":
        raise UserError("queries and corpus are both standard input; name a file")
    check_output("--run", flags.run)
    if flags.run != "-" and not Path(flags.run).parent.is_dir():
        raise UserError(f"{flags.run}: cannot be written (there is no such folder)")
    queries = {query.id: full_text(query) for query in _named(jsonl(flags.queries))}
    model = docjax.load(flags.model)
    counts: dict[str, Any] = {"queries": len(queries)}
    report: Counter = Counter()
    documents = _named(jsonl(flags.corpus, flags.max_bad_fraction, report))
    ranking = search(model, documents, queries, counts, flags.top)
    if flags.run == "-":
        sys.stdout.writelines(trec.lines(ranking, "docjax"))
    else:
        trec.write(ranking, Path(flags.run), "docjax")
    del report["documents"]
    stream = sys.stderr if flags.run == "-" else sys.stdout
    print(json.dumps(counts | {"left_out": report}), file=stream)


def _named(documents: "Iterable[Document]") -> "Iterator[Document]":
    """Yields the documents. Raises UserError for an id that a TREC run cannot hold."""
    from docjax.retrieval import trec

    for document in documents:
        trec.check_id(document.id)
        yield document
