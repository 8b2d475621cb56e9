"""Reads documents from records; needs only Python.

`docjax export` copies this file into its folders, so that sentence-transformers reads
documents as docjax does; docjax itself calls this file from `documents.py`. A document
is anything with a title and sections.
"""

import re
from collections.abc import Mapping
from numbers import Integral
from typing import Any, NamedTuple


class BadRecord(ValueError):
    """A record that is not a document; the args are `place`, `reason` and `detail`."""

    def __str__(self) -> str:
        return ": ".join(self.args)


class Section(NamedTuple):
    heading: str
    text: str


class Content(NamedTuple):
    """The parts of a document that vectors depend on; edges pair section numbers."""

    title: str
    sections: tuple[Section, ...]
    edges: tuple[tuple[int, int], ...]


def content(record: Any, place: str) -> Content:
    """The content of the document that one JSON object describes.

    If the first line of a text is the title, that line is left out. Raises BadRecord for
    the reasons "missing key" and "wrong type"; `place` names the record.
    """
    if not isinstance(record, Mapping):
        raise wrong(place, "a document", "an object", record)
    title, sections = text(record, "title", place), _sections(record, place)
    return Content(title, sections, _edges(record, place, len(sections)))


def check_text(document: Any, place: str, name: str, *texts: str) -> None:
    """Raises BadRecord if a document has no words, or a text is not valid Unicode.

    `texts` are further texts of the document to check.
    """
    words = full_text(document)
    if not words or words.isspace():
        raise BadRecord(place, "empty text", f"{name} has no words")
    try:
        "".join([words, *texts]).encode("utf-8")
    except UnicodeEncodeError as error:
        detail = f"{name}: {error.reason} at {error.start}"
        raise BadRecord(place, "invalid UTF-8", detail) from None


def full_text(document: Any) -> str:
    """Title, headings and texts, separated by blank lines."""
    parts = [document.title]
    for section in document.sections:
        parts += [section.heading, section.text]
    return "\n\n".join(part for part in parts if part)


def text(record: Mapping, key: str, place: str, required: bool = False) -> str:
    """The string at `key`; "" if the key is missing and not `required`."""
    if required and key not in record:
        raise BadRecord(place, "missing key", f"no {key!r}")
    value = record.get(key, "")
    if value is None and not required:
        return ""
    if not isinstance(value, str):
        raise wrong(place, repr(key), "a string", value)
    return value


def items(record: Mapping, key: str, place: str) -> list | tuple:
    """The list at `key`; an empty list if the key is missing."""
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise wrong(place, repr(key), "a list", value)
    return value


def wrong(place: str, what: str, expected: str, value: Any) -> BadRecord:
    kind = type(value).__name__
    return BadRecord(place, "wrong type", f"{what} must be {expected}, not {kind}")


def _sections(record: Mapping, place: str) -> tuple[Section, ...]:
    if record.get("sections") is None:
        words = text(record, "text", place, required=True)
        title = text(record, "title", place)
        return (Section("", _without_title(words, title)),)
    if record.get("text"):
        detail = "both 'text' and 'sections': give only one of them"
        raise BadRecord(place, "wrong type", detail)
    sections = tuple(
        _section(section, f"{place}, section {number}")
        for number, section in enumerate(items(record, "sections", place))
    )
    return sections or (Section("", ""),)


def _without_title(words: str, title: str) -> str:
    """The text without a first line that is the title, which would be read twice; blank
    space may differ."""
    parts = title.split()
    if not parts or not words.lstrip().startswith(parts[0]):
        return words
    line = r"\s*" + r"\s+".join(map(re.escape, parts)) + r"[^\S\r\n]*(?:[\r\n]\s*|$)"
    match = re.match(line, words)
    return words[match.end() :] if match else words


def _section(record: Any, place: str) -> Section:
    if not isinstance(record, Mapping):
        raise wrong(place, "a section", "an object", record)
    words = text(record, "text", place, required=True)
    return Section(text(record, "heading", place), words)


def is_number(value: Any) -> bool:
    """Whether a JSON value is a whole number."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _edges(record: Mapping, place: str, sections: int) -> tuple[tuple[int, int], ...]:
    edges = items(record, "edges", place)
    for edge in edges:
        pair = isinstance(edge, (list, tuple)) and len(edge) == 2
        if not pair or not all(is_number(i) and 0 <= i < sections for i in edge):
            detail = f"'edges' must be pairs of numbers below {sections}, not {edge}"
            raise BadRecord(place, "wrong type", detail)
    return tuple((int(a), int(b)) for a, b in edges)
