"""`docjax compare`: how similar two documents are, and which passages match.

A and B are texts (.txt, .md, .html, .pdf, .docx), or JSON with title and sections; `-`
is standard input. The command prints the similarity, its percentile among pairs of the
model's corpus, the texts, and the strongest links of sections and segments as JSON. With
--html it prints the similarity and the percentile, and a page shows the rest.
"""

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import docjax
from docjax.commands import options
from docjax.errors import UserError

HELP = "show why two documents are similar"
EXAMPLE = "docjax compare runs/demo a.txt b.txt --html why.html"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a run, an exported folder or a hub name")
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument("--html", type=Path, metavar="OUT.html", help="the page")
    options.add(parser, "allow", "encoding")


def run(flags: argparse.Namespace) -> None:
    from docjax.explain import compare_page, yardstick

    if flags.html:
        options.check_file("--html", str(flags.html))
        options.check_other("--html", str(flags.html), A=flags.a, B=flags.b)
    if flags.a == flags.b == "-":
        raise UserError("A and B are both standard input; give A or B as a file")
    a, b = _read(flags.a, flags.encoding), _read(flags.b, flags.encoding)
    model = docjax.load(flags.model, allow=flags.allow)
    comparison, pairs = model.compare(a, b), yardstick.read(Path(flags.model), model)
    if not flags.html:
        print(json.dumps(compare_page.facts(comparison, pairs)))
        return
    try:
        page = compare_page.write(flags.html, comparison, pairs)
    except OSError as error:
        raise UserError(f"{flags.html}: cannot be written ({error.strerror})") from None
    print(json.dumps(compare_page.measured(comparison, pairs) | {"html": str(page)}))


def _read(name: str, encoding: str | None) -> Any:
    """The document in a file."""
    from docjax.data import counted, documents, formats, reader

    if name == "-":
        place = "standard input"
        raw = sys.stdin.buffer.read()
        return documents.from_text(
            documents.decode(raw, place, encoding or "utf-8"), place
        )
    options = reader.Options(encoding=encoding, default=formats.TEXT)
    records = list(itertools.islice(reader.read(name, options), 2))
    if len(records) != 1:
        count = "several documents" if records else "no document"
        raise UserError(f"{name} holds {count}: give a file with one")
    ((place, record),) = records
    if isinstance(record, reader.Unnamed):
        record["id"] = name
    try:
        return reader.parsed(record, place)
    except documents.BadDocument as error:
        raise counted.with_encodings(error) from None
