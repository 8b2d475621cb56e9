"""`docjax pair`: a table of similar and other pairs, made from the links of documents.

Reads documents with "links", the ids that a document links to. With --by
citations, two documents are similar if one links to the other; with --by shared-links,
if they share more than half of all their links (Jaccard), and only documents with at
least two similar ones count. As many random pairs are not similar. Writes split,
source, target and label with tabs between, 80 % train, 10 % validation and 10 % test;
a document may be in pairs of several splits. The table is for the tasks matching and
links, and for training. The command prints the counts as one line of JSON.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from docjax.commands import options
from docjax.errors import UserError

HELP = "a table of similar and other pairs, from links"
EXAMPLE = "docjax pair papers.jsonl --output pairs.tsv"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("documents", help=options.FILES)
    parser.add_argument("--output", required=True, metavar="PAIRS.tsv")
    parser.add_argument(
        "--by",
        choices=("citations", "shared-links"),
        default="citations",
        help="what makes documents similar (%(default)s)",
    )
    parser.add_argument(
        "--negatives",
        choices=("targets", "uniform"),
        help="citations: random sources for the targets of similar pairs, so that no "
        "count of links tells the kinds apart; or random documents for the sources "
        "(targets)",
    )
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    options.add(parser, *options.READING)


def run(flags: argparse.Namespace) -> None:
    from docjax.data import pair_builders
    from docjax.data.pairs import write_pairs
    from docjax.retrieval.beir import read_documents

    _check(flags)
    report: Counter = Counter()
    documents = read_documents(flags.documents, report=report, **options.reading(flags))
    links = {document.id: document.links for document in documents}
    if flags.by == "citations":
        negatives = flags.negatives or "targets"
        built = pair_builders.from_citations(links, flags.seed, negatives)
    else:
        built = pair_builders.from_shared_links(links, flags.seed)
    pairs = pair_builders.split(built.pairs, flags.seed)
    write_pairs(Path(flags.output), pairs)
    similar = sum(pair.similar for pair in built.pairs)
    del report["documents"]
    counts = {
        "documents": len(links),
        "similar": similar,
        "not_similar": len(built.pairs) - similar,
        "pairs": {name: len(rows) for name, rows in pairs.items()},
        "left_out": built.left_out + report,
    }
    print(json.dumps(counts))


def _check(flags: argparse.Namespace) -> None:
    """Raises UserError for impossible flags, before anything is read."""
    if flags.by != "citations" and flags.negatives:
        raise UserError(
            f"--negatives {flags.negatives} is an option of --by citations; leave it "
            "out: the random pairs of shared-links are uniform"
        )
    options.check_least(flags, seed=0)
    options.check_file_in_folder("--output", flags.output)
    if Path(flags.output).exists():
        raise UserError(f"{flags.output} exists already: name another --output")
