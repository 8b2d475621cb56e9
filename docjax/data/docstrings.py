"""Parses a docstring into its summary line, its sections and the names it refers to.

The parser reads both common forms: numpydoc's underlined headings and Google's headings
with a colon. `sources/pydocs.py` collects the docstrings.
"""

import inspect
import re
from textwrap import dedent
from typing import NamedTuple

from docjax.data.sentences import sentences
from docjax.types import Section

SIGNATURE = re.compile(
    r"\A[\w.]+\((?:[^()]|\([^()]*\))*\)[^\n]*\n(?:--[ ]*\n)?(?=\s)", re.DOTALL
)
# Placeholders of documentation templates, and imports: both name the package.
NOISE = re.compile(
    r"%\(\w+\)s|\$[A-Z]{2,}\w*|^\s*(?:>>>|\.\.\.) (?:import|from)\b.*$", re.MULTILINE
)
HEADING = re.compile(r"[^\s|+].*(?<!:)")  # no table row, no colon at the end
UNDERLINE = re.compile(r"[-=]{3,}\s*")
COLON_HEADING = re.compile(
    r"(Args?|Arguments|Attributes|Examples?|Methods|Notes?|Params|Parameters|Raises|"
    r"References?|Returns?|See [Aa]lso|Usage|Usage [Ee]xamples?|Warning|Yields):{1,2}\s*"
)
QUOTED_NAME = re.compile(r":\w+:`~?\.?([\w.]+)`")
NAMES = re.compile(r"([\w.]+(?:\s*,\s*[\w.]+)*)(?:\s*:.*)?")
SUMMARY_WORDS = 40  # of a longer first paragraph, the summary is one sentence


class Docstring(NamedTuple):
    """A parsed docstring; the sections do not contain the summary."""

    summary: str
    sections: tuple[Section, ...]  # empty sections are left out
    see_also: tuple[str, ...]  # names as written, in order

    @property
    def words(self) -> int:
        """Words of the sections, headings included."""
        return sum(len(f"{s.heading} {s.text}".split()) for s in self.sections)


def parse(docstring: str) -> Docstring:
    """The parts of a docstring, which may be a `__doc__` or come from source code."""
    text = SIGNATURE.sub("", inspect.cleandoc(docstring))
    (_, first), *rest = _split(NOISE.sub("", text))
    summary, first = _summary(first)
    sections = [Section("", first), *(Section(h, t) for h, t in rest)]
    see_also = [s.text for s in sections if s.heading.lower() == "see also"]
    kept = tuple(s for s in sections if s.text)
    return Docstring(summary, kept, _names("\n".join(see_also)))


def _split(text: str) -> list[tuple[str, str]]:
    """Headings and texts; the first heading is empty."""
    lines = text.splitlines()
    parts: list[tuple[str, list[str]]] = [("", [])]
    for i, line in enumerate(lines):
        after = lines[i + 1] if i + 1 < len(lines) else ""
        title = COLON_HEADING.fullmatch(line)
        if HEADING.fullmatch(line) and UNDERLINE.fullmatch(after):
            parts.append((line.strip(), []))
        elif title and (not after.strip() or after[:1].isspace()):
            parts.append((title.group(1), []))
        elif not (UNDERLINE.fullmatch(line) and i and lines[i - 1][:1].strip()):
            parts[-1][1].append(line)
    return [(heading, dedent("\n".join(part)).strip()) for heading, part in parts]


def _summary(text: str) -> tuple[str, str]:
    """The first paragraph (of a long one, the first sentence), and the other text."""
    paragraph, _, rest = text.partition("\n\n")
    if len(paragraph.split()) <= SUMMARY_WORDS:
        return " ".join(paragraph.split()), rest.strip()
    first = sentences(paragraph)[0]
    return " ".join(first.split()), text[text.index(first) + len(first) :].strip()


def _names(text: str) -> tuple[str, ...]:
    """The names that a "See Also" section lists."""
    names = []
    for line in text.splitlines():
        quoted, listed = QUOTED_NAME.findall(line), NAMES.fullmatch(line.rstrip())
        if quoted:
            names += quoted
        elif listed and line[:1].strip():
            names += re.split(r"\s*,\s*", listed.group(1))
    return tuple(dict.fromkeys(name.strip(".") for name in names))
