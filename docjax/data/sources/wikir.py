"""Articles as documents with a query each, as WIKIR makes them from Wikipedia.

Frej et al., "WIKIR: A Python Toolkit for Building a Large-scale Wikipedia-based
Information Retrieval Dataset", 2020. `docjax queries` writes them as a collection.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator

from docjax.data.records import full_text
from docjax.data.sentences import sentences
from docjax.data.sources import jsonl as jsonl_lib
from docjax.data.sources.jsonl import jsonl
from docjax.errors import UserError
from docjax.types import Document, Section

QUERIES = ("title", "sentence")
ENDS = tuple(".!?。")
SHORTEST = 5  # words of a first sentence; shorter lines are those of a box of facts
# Lines that Wikipedia puts above an article.
HATNOTE = re.compile(
    r"(For|Not to be confused|This article|This section|This biography|Find sources|"
    r"See also|Contentious material|Unsourced material|Please)\b|.*\bredirects? here\b"
)
stamp = jsonl_lib.stamp


def wikir(
    path: str,
    query: str = "title",
    query_words: int = 10,
    least_words: int = 200,
    document_words: int | None = None,
    max_bad_fraction: float = 0.0,
    report: Counter | None = None,
) -> Iterator[Document]:
    """The articles of JSON lines as documents without title and first sentence.

    Args:
      query: the query of a document: its "title" or its first "sentence". The document
        lacks both, whichever is its query, as in WIKIR's published sets.
      query_words: the first words of it that are kept.
      least_words: shorter articles are left out; `report` counts them.
      document_words: the first words of a document that are kept (WIKIR: 200); None:
        all, so that long documents have graphs.

    Raises:
      UserError: for another kind of query, and what `documents.read` raises.
    """
    if query not in QUERIES:
        raise UserError(f"query {query!r} is none of {', '.join(QUERIES)}")
    counts = Counter() if report is None else report
    for article in jsonl(path, max_bad_fraction, counts):
        if len(full_text(article).split()) < least_words:
            counts["short articles"] += 1
            continue
        sentence = first_sentence(article)
        text = article.title if query == "title" else sentence
        words = (text or "").split()[:query_words]
        rest = _without(article, sentence)
        if document_words is not None:
            rest = _first_words(rest, document_words)
        has_text = bool(full_text(rest).strip())
        if not (words and has_text):
            counts[f"articles without {query if has_text else 'further text'}"] += 1
            continue
        yield dataclasses.replace(rest, query=" ".join(words))


def first_sentence(article: Document) -> str | None:
    """The first sentence below an article's hatnotes and box of facts.

    It has SHORTEST words or more, a full stop, and a word of the title where there is
    one.
    """
    wanted = {word.lower() for word in re.findall(r"\w+", article.title)}
    for section in article.sections[:1]:
        for sentence in sentences(section.text):
            words = re.findall(r"\w+", sentence.lower())
            is_near = not wanted or not wanted.isdisjoint(words)
            is_whole = len(words) >= SHORTEST and sentence.rstrip("\"')”")[-1:] in ENDS
            if is_whole and is_near and not HATNOTE.match(sentence):
                return sentence
    return None


def _without(article: Document, sentence: str | None) -> Document:
    """The article without title and sentence; its sections stay."""
    sections = article.sections
    if sentence and sections:
        first = Section(sections[0].heading, sections[0].text.replace(sentence, "", 1))
        sections = (first, *sections[1:])
    return dataclasses.replace(article, title="", sections=sections)


def _first_words(article: Document, most: int) -> Document:
    sections = []
    for section in article.sections:
        words = section.text.split()[:most]
        most -= len(words)
        if words:
            sections.append(Section(section.heading, " ".join(words)))
    return dataclasses.replace(article, sections=tuple(sections))
