"""Queries from TREC topics: the number and the title of each topic."""

import html
import re
from collections import Counter
from collections.abc import Iterator

from docjax.data import counted, documents
from docjax.data.sources.lines import files, open_lines
from docjax.errors import UserError
from docjax.types import Document

TOPIC = re.compile(
    r"<top>.*?<num>(?:\s*Number:)?\s*(?P<id>[^\s<]+)\s*(?:</num>\s*)?"
    r"<title>(?:\s*Topic:)?\s*(?P<text>.*?)\s*(?=</title>|<desc>|<narr>|\n\s*</?\w+>)",
    re.DOTALL,
)


def topics(
    path: str, max_bad_fraction: float = 0.0, report: Counter | None = None
) -> Iterator[Document]:
    """The topics of the files that `path` matches, one document each, without bodies.
    Raises UserError for a file without topics, and what `counted.read` raises."""
    return counted.read(_found(path), _parsed, max_bad_fraction, report)


def _found(path: str) -> Iterator[tuple[str, re.Match]]:
    for file in files(path):
        text = documents.decode(b"".join(open_lines(file)), str(file))
        number = 0
        for number, match in enumerate(TOPIC.finditer(text), start=1):
            yield f"{file}, topic {number}", match
        if number != text.count("<top>") or not number:
            raise UserError(
                f"{file}: {number} of {text.count('<top>')} topics have the form "
                "<top> <num> Number: ID <title> TEXT; rename JSON lines to .jsonl, a "
                "table of ids and texts to .tsv"
            )


def _parsed(match: re.Match, place: str) -> Document:
    text = html.unescape(match["text"])
    return documents.parse({"id": match["id"], "text": text}, place)
