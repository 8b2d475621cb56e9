"""Documents from JSON lines: plain, .gz, .xz or .zst, one file or a pattern of many."""

import dataclasses
import logging
import re
import string
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from docjax.data import documents
from docjax.data.sources.lines import files, numbered_lines
from docjax.errors import UserError
from docjax.storage import digest
from docjax.types import Document

logger = logging.getLogger(__name__)

NUMBER = re.compile(r"\s*(\d+(\.\d+)*[.:]?\s+)?")  # before a heading


def jsonl(
    path: str,
    max_bad_fraction: float = 0.0,
    report: Counter | None = None,
    without: tuple[str, ...] = (),
) -> Iterator[Document]:
    """The documents in the lines of the files that `path` (a name or glob) matches.

    "-" is standard input, which can be read only once.

    without: headings of sections that are not read, such as "References". Upper and
    lower case count alike; a number before the heading and marks behind it, as in
    "Abstract*", do not count. A document with no other section is left out. The log
    counts both.

    Raises UserError for a missing or damaged file, and what `documents.read` raises.
    """
    lines = numbered_lines(path)
    whole = documents.read(lines, documents.parse_line, max_bad_fraction, report)
    headings = {_plain(heading) for heading in without}
    return _without(whole, headings) if headings else whole


def _without(
    documents: Iterator[Document], headings: Collection[str]
) -> Iterator[Document]:
    """The documents without the sections that have these headings."""
    sections, empty = 0, 0
    for document in documents:
        kept = [
            number
            for number, section in enumerate(document.sections)
            if _plain(section.heading) not in headings
        ]
        sections += len(document.sections) - len(kept)
        if kept:
            yield _with_sections(document, kept)
        empty += not kept
    text = "left out %d sections named %s, and %d documents with no other section"
    logger.info(text, sections, ", ".join(sorted(headings)), empty)


def _with_sections(document: Document, kept: Sequence[int]) -> Document:
    """The document with the sections of these numbers, and the edges between them."""
    places = {number: place for place, number in enumerate(kept)}
    edges = [e for e in document.edges if e[0] in places and e[1] in places]
    return dataclasses.replace(
        document,
        sections=tuple(document.sections[number] for number in kept),
        edges=tuple((places[first], places[second]) for first, second in edges),
    )


def _plain(heading: str) -> str:
    """A heading in lower case without its number and the marks at its end."""
    words = heading[NUMBER.match(heading).end() :].lower()
    return words.rstrip(string.punctuation + string.whitespace).lstrip()


def check_again(path: str) -> None:
    """Raises UserError for a stream, since documents are read more than once."""
    if path == "-" or Path(path).is_fifo():
        raise UserError(
            f"{path}: a stream can be read only once, this reads twice: name a file"
        )


def stamp(path: str, content: bool = False, **keywords) -> list[tuple]:
    return [(file.name, *digest.stamp(file, content)) for file in files(path)]
