"""Documents from people's files: JSON, CSV, Parquet, Arrow, Excel, texts and folders.

`docjax/data/formats.py` tells the format of a file, `columns.py` the columns of a table,
and `docs/files.md` lists for users what is read.
"""

import dataclasses
import logging
import re
import string
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from docjax.data import columns, counted, reader
from docjax.data.documents import NoDocuments
from docjax.data.sources import lines
from docjax.data.streams import shown
from docjax.storage import digest
from docjax.types import Document

logger = logging.getLogger(__name__)

NUMBER = re.compile(r"\s*(\d+(\.\d+)*[.:]?\s+)?")  # before a heading


def files(  # noqa: PLR0913 the fields of a config
    path: str,
    text: str | None = None,
    title: str | None = None,
    label: str | None = None,
    id: str | None = None,
    split: str | None = None,
    query: str | None = None,
    links: str | None = None,
    encoding: str | None = None,
    without: Sequence[str] = (),
    max_bad_fraction: float = 0.0,
    report: Counter | None = None,
) -> Iterator[Document]:
    """The documents of a file, of the files that a pattern matches, or of a folder.

    A row of a table (JSON, CSV, TSV, Parquet, Arrow, Excel) is a document, and so is a
    text (.txt, .md, .html, .pdf, .docx), alone or in a folder. In a folder the
    sub-folders give label and split: `LABEL/file`, `SPLIT/file`, `SPLIT/LABEL/file`. A
    folder of Hugging Face's `save_to_disk` is read too. "-" is standard input, which can
    be read only once. Files may be packed (.gz, .xz, .zst, .bz2).

    Args:
      text, title, label, id, split, query, links: the column of each; None: a column
        with a usual name (`docjax/data/columns.py`); "": no such column. Without ids
        they are the numbers of the rows, or the paths of the files. The log says which
        columns are read, and which go to `metadata`.
      encoding: that of texts; None: UTF-8, or what a file's first bytes say.
      without: headings of sections that are not read, such as "References". Upper and
        lower case count alike; a number before the heading and marks behind it, as in
        "Abstract*", do not count. A document with no other section is left out. The log
        counts both.

    Raises:
      UserError: for a missing, damaged or changing file, one whose name says another
        format than its content, columns that are not there or not clear; and what
        `counted.read` raises.
    """
    asked = dict(text=text, title=title, label=label, id=id)
    asked |= dict(split=split, query=query, links=links)
    found = reader.read(path, reader.Options(asked, encoding=encoding))
    whole = counted.read(found, reader.parsed, max_bad_fraction, report)
    whole = _named(path, whole)
    headings = {_plain(heading) for heading in without}
    return _without(whole, headings) if headings else whole


def queries(
    path: str, encoding: str | None = None, text: str | None = None
) -> Iterator[Document]:
    """The queries in files, as `files`; a column "query" or "question" is the text."""
    options = reader.Options({"text": text}, columns.QUERIES, encoding)
    found = reader.read(path, options)
    return counted.read(found, reader.parsed)


def stamp(path: str, content: bool = False, **keywords) -> list[tuple]:
    """Changes when a file changes, is added or removed. Raises UserError for a stream,
    which cannot be read again."""
    lines.check_again(path)
    if Path(path).is_dir():
        return [
            (str(file), *digest.stamp(file, content)) for file in reader.inside(path)
        ]
    return [(file.name, *digest.stamp(file, content)) for file in lines.files(path)]


def _named(path: str, documents: Iterator[Document]) -> Iterator[Document]:
    """The documents. Raises NoDocuments with the path if there are none."""
    try:
        yield from documents
    except NoDocuments as error:
        raise NoDocuments(f"{shown(path)}: {error}") from None


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
