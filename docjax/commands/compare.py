"""`docjax compare`: how similar two documents are, and which passages match.

A and B are text files, or JSON with title and sections; `-` is standard input. The
command prints the similarity, its percentile among pairs of the model's corpus, the
texts, and the strongest links of sections and segments as JSON. With --html it prints the
similarity and the percentile, and a page shows the rest.
"""

import argparse
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
    options.add(parser, "allow")


def run(flags: argparse.Namespace) -> None:
    from docjax.explain import compare_page, yardstick

    if flags.html:
        options.check_file("--html", str(flags.html))
    if flags.a == flags.b == "-":
        raise UserError("A and B are both standard input; give A or B as a file")
    a, b = _read(flags.a), _read(flags.b)
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


def _read(name: str) -> Any:
    """The document in a file."""
    from docjax.data import documents

    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UserError(f"{name}: cannot be read ({error.strerror})") from None
    place = "standard input" if name == "-" else name
    return documents.from_text(documents.decode(raw, place), place)
