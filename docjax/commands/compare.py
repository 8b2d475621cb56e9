"""`docjax compare`: how similar two documents are, and which of their passages.

A and B are text files, or JSON with title and sections; `-` is standard input. The
cosines are printed as JSON; with --html, a page shows the texts and their links.
"""

import argparse
import json
import sys
from pathlib import Path

import docjax
from docjax.config import UserError
from docjax.data import documents
from docjax.explain import compare
from docjax.types import Document

HELP = "show why two documents are similar"
EXAMPLE = "docjax compare runs/demo a.txt b.txt --html why.html"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a run, an exported folder or a hub name")
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument("--html", type=Path, metavar="OUT.html", help="the page")


def run(flags: argparse.Namespace) -> None:
    if flags.a == flags.b == "-":
        raise UserError("A and B are both standard input: give one of them as a file")
    a, b = _read(flags.a), _read(flags.b)
    found = docjax.load(flags.model).compare(a, b)
    shown = {"similarity": round(found.similarity, 6)}
    if flags.html:
        try:
            shown["html"] = str(compare.write(flags.html, found))
        except OSError as error:
            raise UserError(
                f"{flags.html}: cannot be written ({error.strerror})"
            ) from None
    else:
        for kind in ("sections", "segments"):
            shown[kind] = getattr(found, kind).round(6).tolist()
        for cut in ("segments_cut", "tokens_cut"):
            shown[cut] = [getattr(side, cut) for side in (found.a, found.b)]
    print(json.dumps(shown))


def _read(name: str) -> Document:
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UserError(f"{name}: cannot be read ({error.strerror})") from None
    place = "standard input" if name == "-" else name
    return documents.from_text(documents.decode(raw, place), place)
