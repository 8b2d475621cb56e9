"""Cuts documents into passages and sentences; needs only Python.

`docjax export` copies this file into its folders, so that sentence-transformers cuts
documents as docjax does; docjax itself calls this file from `units.py`.
"""

from collections.abc import Iterator
from typing import Any

from docjax.data.records import Section, full_text
from docjax.data.sentences import sentences


def passages(document: Any, words: int = 100) -> Iterator[tuple[str, int]]:
    """The text and section number of each passage of at most `words` words."""
    for number, pieces in _sentences_by_section(document):
        passage: list[str] = []
        for piece in map(str.split, pieces):
            if passage and len(passage) + len(piece) > words:
                yield " ".join(passage), number
                passage = []
            passage += piece
        if passage:
            yield " ".join(passage), number


def sentences_of(document: Any) -> Iterator[tuple[str, int]]:
    """The text and section number of each sentence."""
    for number, pieces in _sentences_by_section(document):
        for sentence in pieces:
            yield " ".join(sentence.split()), number


def whole(document: Any) -> Iterator[tuple[str, int]]:
    """The full text as one unit, in the first section."""
    yield full_text(document), 0


def whole_sections(document: Any) -> Iterator[tuple[str, int]]:
    """The full text and the number of each section; the title is in the first."""
    for number, section in enumerate(document.sections or (Section("", ""),)):
        parts = document.title if number == 0 else "", section.heading, section.text
        if any(part.strip() for part in parts):
            yield "\n\n".join(part for part in parts if part), number


def _sentences_by_section(document: Any) -> Iterator[tuple[int, list[str]]]:
    """Number and sentences of each section; the title is in the first section."""
    for number, section in enumerate(document.sections or (Section("", ""),)):
        before = [document.title if number == 0 else "", section.heading]
        yield number, [s for s in before if s.strip()] + sentences(section.text)
