"""Articles as documents with a query each, as WIKIR makes them from Wikipedia.

Frej et al., "WIKIR: A Python Toolkit for Building a Large-scale Wikipedia-based
Information Retrieval Dataset", 2020. `docjax queries` writes them as a collection.
"""

import dataclasses
import itertools
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from docjax.data.counted import by_reason
from docjax.data.records import full_text
from docjax.data.sentences import sentences
from docjax.data.sources import files
from docjax.errors import UserError
from docjax.types import Document, Section

logger = logging.getLogger(__name__)

QUERIES = ("title", "sentence")
ENDS = tuple(".!?。")
SHORTEST = 5  # words of a first sentence; shorter lines are those of a box of facts
# What a first sentence says of its subject; captions seldom do.
SAYS = re.compile(
    r"\b(is|are|was|were|has|have|had|can|refers? to|takes place|took place|occurs?|"
    r"consists?|comprises?|includes?|encompass(es)?|describes?|displays|spans|dates|"
    r"begins|began|connects|separates)\b"
)
NEAR = 3  # sentences among which one that says something of the whole title is first
CUT = 3  # parts into which a sentence with full stops in brackets, as (c. 1450), is cut
# Lines that Wikipedia puts above an article.
HATNOTE = re.compile(
    r"(For|Not to be confused|This (\S+ )?(article|section|biography)|Find sources|"
    r"See also|Contentious material|Unsourced material|Statements consisting|"
    r"Wikimedia Commons|You should also|The neutrality|Further details may|Pictured|"
    r"In this \S+ name|This is an? \S+ name|The native form of this|Please)\b|"
    r"\^|.*\bredirects? here\b"
)
stamp = files.stamp


def wikir(
    path: str,
    query: str = "title",
    query_words: int = 10,
    least_words: int = 200,
    document_words: int | None = None,
    max_bad_fraction: float = 0.0,
    report: Counter | None = None,
) -> Iterator[Document]:
    """The articles of files as documents without title and first sentence.

    Args:
      query: the query of a document: its "title" or its first "sentence". The document
        lacks both, whichever is its query, as in WIKIR's published sets.
      query_words: the first words of it that are kept.
      least_words: shorter articles are left out.
      document_words: the first words of a document that are kept (WIKIR: 200); None:
        all, so that long documents have graphs.
      report: counts what is left out, by reason; without it the log gets the counts.

    Raises:
      UserError: for another kind of query, and what `counted.read` raises.
    """
    counting = {"max_bad_fraction": max_bad_fraction, "report": report}
    articles = files.files(path, **counting)
    options = query_words, least_words, document_words, report
    yield from with_queries(articles, query, *options, path)


def with_queries(
    articles: Iterable[Document],
    query: str,
    query_words: int,
    least_words: int,
    document_words: int | None,
    report: Counter | None,
    place: str,
) -> Iterator[Document]:
    """Articles as documents with a query each; the keywords are those of `wikir`, and
    `place` names the articles in the log."""
    if query not in QUERIES:
        raise UserError(f"query {query!r} is none of {', '.join(QUERIES)}")
    counts: Counter = Counter()
    for article in articles:
        sentence = first_sentence(article)
        text = article.title if query == "title" else sentence
        words = (text or "").split()[:query_words]
        rest = _without(article, sentence)
        if document_words is not None:
            rest = _first_words(rest, document_words)
        if len(full_text(article).split()) < least_words:
            counts["short articles"] += 1
        elif not full_text(rest).strip():
            counts["articles without further text"] += 1
        elif not words:
            counts[f"articles without {query}"] += 1
        else:
            yield dataclasses.replace(rest, query=" ".join(words))
    if report is not None:
        report.update(counts)
    elif counts:
        logger.warning("%s: left out %s", place, by_reason(counts))


def first_sentence(article: Document) -> str | None:
    """The first sentence below an article's hatnotes, box of facts and captions.

    It has SHORTEST words or more, a full stop, closed brackets, and a word of the title
    where there is one. Of the first NEAR such sentences it is the first with all words
    of the title before its verb; else the first of the section with a verb of SAYS;
    else the first.
    """
    wanted = set(_words(article.title))
    subject = set(_words(re.sub(r"\s*\([^)]*\)$", "", article.title)))
    text = article.sections[0].text if article.sections else ""
    found = [sentence for sentence in _joined(text) if _is_text(sentence, wanted)]
    about = (sentence for sentence in found[:NEAR] if _is_about(sentence, subject))
    return next(itertools.chain(about, filter(SAYS.search, found), found), None)


def _is_text(sentence: str, wanted: set[str]) -> bool:
    """Whether it may be the first of an article whose title has the words `wanted`."""
    words = _words(sentence)
    is_near = not wanted or not wanted.isdisjoint(words)
    is_whole = len(words) >= SHORTEST and sentence.rstrip("\"')”")[-1:] in ENDS
    return is_whole and is_near and not HATNOTE.match(sentence)


def _is_about(sentence: str, subject: set[str]) -> bool:
    """Whether words that begin with those of the subject stand before its verb."""
    verb = SAYS.search(sentence)
    before = _words(sentence[: verb.start()]) if verb else []
    starts = (any(word.startswith(part) for word in before) for part in subject)
    return bool(verb and subject) and all(starts)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _joined(text: str) -> Iterator[str]:
    """The sentences of a text whose brackets are closed, if need be by the next ones."""
    spans, end = [], 0
    for sentence in sentences(text):
        start = text.index(sentence, end)
        end = start + len(sentence)
        spans.append((start, end))
    for number, (start, _) in enumerate(spans):
        parts = (text[start:end] for _, end in spans[number : number + CUT])
        closed = (part for part in parts if part.count("(") == part.count(")"))
        yield from itertools.islice(closed, 1)


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
