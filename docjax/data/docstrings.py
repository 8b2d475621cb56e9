"""One docstring is parsed: its summary line, its sections, the names it refers to.

Both common forms are understood, numpydoc's underlined headings and Google's
headings with a colon. Where docstrings come from is in `sources/pydocs.py`.
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
# Placeholders of documentation templates, and imports: these name the package.
NOISE = re.compile(
    r"%\(\w+\)s|\$[A-Z]{2,}\w*|^\s*(?:>>>|\.\.\.) (?:import|from)\b.*$", re.MULTILINE
)
HEADING = re.compile(r"[^\s|+].*(?<!:)")  # no row of a table, nothing introduced
UNDERLINE = re.compile(r"[-=]{3,}\s*")
COLON_HEADING = re.compile(
    r"(Args?|Arguments|Attributes|Examples?|Methods|Notes?|Params|Parameters|Raises|"
    r"References?|Returns?|See [Aa]lso|Usage|Usage [Ee]xamples?|Warning|Yields):{1,2}\s*"
)
QUOTED_NAME = re.compile(r":\w+:`~?\.?([\w.]+)`")
NAMES = re.compile(r"([\w.]+(?:\s*,\s*[\w.]+)*)(?:\s*:.*)?")
SUMMARY_WORDS = 40  # a longer first paragraph is text, its first sentence the summary


class Docstring(NamedTuple):
    """What a docstring says; the summary is not part of the sections."""

    summary: str
    sections: tuple[Section, ...]  # without the empty ones
    see_also: tuple[str, ...]  # names as written, in their order

    @property
    def words(self) -> int:
        """Words of the sections, headings included."""
        return sum(len(f"{s.heading} {s.text}".split()) for s in self.sections)


def parse(docstring: str) -> Docstring:
    """The parts of a docstring, as `__doc__` or the source has it."""
    text = SIGNATURE.sub("", inspect.cleandoc(docstring))
    (_, first), *others = _split(NOISE.sub("", text))
    summary, first = _summary(first)
    sections = [Section("", first), *(Section(h, t) for h, t in others)]
    see_also = [s.text for s in sections if s.heading.lower() == "see also"]
    kept = tuple(s for s in sections if s.text)
    return Docstring(summary, kept, _names("\n".join(see_also)))


def _split(text: str) -> list[tuple[str, str]]:
    """Headings and texts; the first heading is empty."""
    lines = text.splitlines()
    found: list[tuple[str, list[str]]] = [("", [])]
    for i, line in enumerate(lines):
        after = lines[i + 1] if i + 1 < len(lines) else ""
        title = COLON_HEADING.fullmatch(line)
        if HEADING.fullmatch(line) and UNDERLINE.fullmatch(after):
            found.append((line.strip(), []))
        elif title and (not after.strip() or after[:1].isspace()):
            found.append((title.group(1), []))
        elif not (UNDERLINE.fullmatch(line) and i and lines[i - 1][:1].strip()):
            found[-1][1].append(line)
    return [(heading, dedent("\n".join(part)).strip()) for heading, part in found]


def _summary(text: str) -> tuple[str, str]:
    """The first paragraph, or the first sentence of a long one, and the rest."""
    paragraph, _, rest = text.partition("\n\n")
    if len(paragraph.split()) <= SUMMARY_WORDS:
        return " ".join(paragraph.split()), rest.strip()
    first = sentences(paragraph)[0]
    return " ".join(first.split()), text[text.index(first) + len(first) :].strip()


def _names(text: str) -> tuple[str, ...]:
    """The names that a "See Also" section lists."""
    found = []
    for line in text.splitlines():
        quoted, listed = QUOTED_NAME.findall(line), NAMES.fullmatch(line.rstrip())
        if quoted:
            found += quoted
        elif listed and line[:1].strip():
            found += re.split(r"\s*,\s*", listed.group(1))
    return tuple(dict.fromkeys(name.strip(".") for name in found))
