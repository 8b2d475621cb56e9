"""`docjax similarities`: how similar several documents, their sections and segments are.

Reads documents (docs/files.md), and writes into --output
`similarities.json` (the cosines of all documents, of all sections and of all segments,
with their texts) and a heat map of each as PNG, with its numbers as CSV. Where a
model's own segments are too long for a reader, segments are shorter passages, and
"chunks" are the model's own. `docjax compare` shows two documents in detail.
"""

import argparse
import json
from pathlib import Path

import docjax
from docjax.commands import options

HELP = "how similar several documents and all their parts are"
EXAMPLE = "docjax similarities runs/demo papers.jsonl --output maps"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a run, an exported folder or a hub name")
    parser.add_argument("documents", help=f"{options.FILES}, or -")
    parser.add_argument("--output", required=True, metavar="DIR")
    options.add(parser, "allow", *options.READING)


def run(flags: argparse.Namespace) -> None:
    from docjax.errors import UserError
    from docjax.explain import similarity_maps
    from docjax.retrieval.beir import read_documents

    documents = list(read_documents(flags.documents, **options.reading(flags)))
    if len(documents) < 2:
        raise UserError(f"{flags.documents} has a single document: give at least two")
    similarities = docjax.load(flags.model, allow=flags.allow).similarities(documents)
    try:
        maps = similarity_maps.write(Path(flags.output), similarities)
    except OSError as error:
        raise UserError(
            f"--output {flags.output}: cannot be written ({error.strerror})"
        ) from None
    by_kind = similarity_maps.by_kind(similarities)
    counts = {kind: len(cosines) for kind, cosines in by_kind.items()}
    print(json.dumps(counts | {"maps": [str(path) for path in maps.values()]}))
