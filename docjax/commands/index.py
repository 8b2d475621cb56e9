"""`docjax index`: makes a folder that `docjax search` reads in place of a corpus.

The folder has the vectors of all documents, BM25's index and the texts; with --passages
also the vectors of all passages. Prints the counts as one line of JSON. After a stop,
the same command continues where it stopped; several processes with the same --output
share the encoding.
"""

import argparse
import json
from pathlib import Path

import docjax
from docjax.commands import options

HELP = "the vectors, passages and words of a corpus, for docjax search"
EXAMPLE = "docjax index runs/demo corpus.jsonl --output index --passages"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a run, or a Hugging Face folder or name")
    parser.add_argument(
        "corpus",
        help=options.FILES,
    )
    parser.add_argument("--output", required=True, metavar="DIR")
    parser.add_argument(
        "--passages", action="store_true", help="also keep the vectors of passages"
    )
    parser.add_argument(
        "--codes",
        choices=("int8", "binary"),
        help="choose documents by smaller vectors first: less memory, nearly exact",
    )
    parser.add_argument(
        "--graph",
        action="store_true",
        help="search a graph of neighbours, for many millions of documents: not exact; "
        "its vectors, in half their size, fit into memory (docjax[graph])",
    )
    options.add(parser, "words", "allow", "truncate-dim", *options.READING)
    options.add(parser, "processes", "process")


def run(flags: argparse.Namespace) -> None:
    from docjax.model.build_index import build_index

    options.check_folder(flags.output)
    counts = build_index(
        docjax.load(flags.model, truncate_dim=flags.truncate_dim, allow=flags.allow),
        flags.corpus,
        Path(flags.output),
        passages=flags.passages,
        words=flags.words,
        kind=flags.codes,
        graph=flags.graph,
        reading=options.reading(flags),
        processes=flags.processes,
        process=flags.process,
    )
    if counts is not None:
        print(json.dumps(counts))
