"""`docjax queries`: a retrieval collection made of articles, without judges.

Reads articles with title and sections, such as an extraction of
Wikipedia. The query of an article is its title or its first sentence. The article then
lacks both, whichever is the query, as in WIKIR's published sets. Articles that link to
it answer its query with grade 1, and the article itself with grade 2; without links,
only the article itself does. Links name the ids of articles. WIKIR counts only the
links of an article's first sentence: put only these into `links` to have its
judgements. Writes BEIR's layout with the splits train, dev and test, and prints the
counts as one line of JSON.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from docjax.commands import options

HELP = "a retrieval collection made of articles"
EXAMPLE = "docjax queries articles.jsonl --output wikir --query sentence"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("articles", help=options.FILES)
    parser.add_argument("--output", required=True, metavar="FOLDER")
    parser.add_argument(
        "--query",
        choices=("title", "sentence"),
        default="title",
        help="the query of an article, which loses title and first sentence "
        "(%(default)s)",
    )
    parser.add_argument(
        "--query-words", type=int, default=10, help="words of a query (%(default)s)"
    )
    parser.add_argument(
        "--least-words",
        type=int,
        default=200,
        help="words of an article; shorter ones are left out (%(default)s)",
    )
    parser.add_argument(
        "--document-words", type=int, help="words of a document; WIKIR: 200 (all)"
    )
    parser.add_argument(
        "--validation", type=int, default=1000, help="queries (%(default)s)"
    )
    parser.add_argument("--test", type=int, default=1000, help="queries (%(default)s)")
    parser.add_argument(
        "--least-links",
        type=int,
        default=5,
        help="articles that must link to the article of a query, where articles have "
        "links (%(default)s)",
    )
    parser.add_argument("--seed", type=int, default=27355, help="(%(default)s)")
    options.add(parser, *options.READING)


def run(flags: argparse.Namespace) -> None:
    from docjax.data.sources.wikir import with_queries
    from docjax.retrieval.beir import read_documents
    from docjax.retrieval.from_articles import write

    options.check_folder(flags.output)
    options.check_least(flags, query_words=1, least_words=0, document_words=1)
    options.check_least(flags, validation=0, test=0, least_links=1, seed=0)
    report: Counter = Counter()
    articles = read_documents(flags.articles, report=report, **options.reading(flags))
    documents = with_queries(
        articles,
        flags.query,
        flags.query_words,
        flags.least_words,
        flags.document_words,
        report,
        flags.articles,
    )
    counts = write(
        documents,
        Path(flags.output),
        validation=flags.validation,
        test=flags.test,
        least_links=flags.least_links,
        seed=flags.seed,
    )
    del report["documents"]
    print(json.dumps(counts | {"left_out": report}))
