"""What `model.search` gives: documents, each with the passage that is nearest."""

import bisect
import dataclasses
import itertools
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence

from markupsafe import Markup

WIDTH, LINES = 80, 3  # of a passage that is shown
SHOWN = 3  # hits in the representation of a list of them
COMMON = 5  # letters that two forms of a word share


@dataclasses.dataclass(frozen=True)
class Hit:
    """A document that a search has found.

    score: by the similarity of the model's training; higher is nearer. passage: the
    text of the document's segment that is nearest to the query. section: its heading.
    """

    id: str
    score: float
    title: str
    section: str
    passage: str

    def lines(self, query: str, width: int = WIDTH) -> list[str]:
        """The lines of the passage around the words of a query, without the title."""
        return excerpt(self.passage.removeprefix(self.title), query, width)

    @property
    def name(self) -> str:
        """The title in one line, or the first words of the passage without a title."""
        return one_line(self.title) or shortened(one_line(self.passage), 60)

    def __repr__(self) -> str:
        title = shortened(one_line(self.title) or "(no title)", 56)
        head = f"{self.score:.3f}  {title}  ({one_line(self.id)})"
        lines = self.lines(self.title, WIDTH - 2)
        return "\n".join([head, *(f"  {line}" for line in lines)])

    def _repr_html_(self) -> str:
        return Hits([self])._repr_html_()


class Hits(list[Hit]):
    """The documents found for one query, nearest first."""

    def __init__(self, hits: Iterable[Hit] = (), query: str = ""):
        super().__init__(hits)
        self.query = query

    def __repr__(self) -> str:
        what = f" for {shortened(one_line(self.query), 40)!r}" if self.query else ""
        lines = [
            f"{len(self)} hit{'s' * (len(self) != 1)}{what}",
            *map(_scored, self[:SHOWN]),
        ]
        if len(self) > SHOWN:
            lines.append(f"  … {len(self) - SHOWN} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            Markup(
                "<tr><td>{:.3f}</td><td><b>{}</b><br><small>{}</small></td>"
                "<td>{}</td></tr>"
            ).format(hit.score, hit.name, hit.id, " ".join(hit.lines(self.query)))
            for hit in self
        ]
        caption = Markup("<caption>{}</caption>").format(one_line(self.query))
        head = "<tr><th>score</th><th>document</th><th>passage</th></tr>"
        return f"<table>{caption}{head}{''.join(rows)}</table>"


def excerpt(text: str, query: str, width: int = WIDTH, lines: int = LINES) -> list[str]:
    """The lines of a text around the words of a query, each of at most `width` columns.

    The part with the most different words of the query is taken, the first such part of
    several; a mark stands for what is left out.
    """
    words = one_line(text).split()
    if any(unicodedata.east_asian_width(letter) in "WF" for letter in text[:1000]):
        width //= 2  # such letters have two columns
    starts = [0, *itertools.accumulate(len(word) + 1 for word in words)]
    room = (width - 6) * lines  # a line is seldom full
    first = _around(words, starts, room, query)
    last = max(first + 1, bisect.bisect_right(starts, starts[first] + room) - 1)
    before, after = "… " * (first > 0), " …" * (last < len(words))
    shown = textwrap.wrap(f"{before}{' '.join(words[first:last])}{after}", width)
    if len(shown) > lines:  # long words do not fill their lines
        shown = [*shown[: lines - 1], shortened(shown[lines - 1] + " …", width)]
    return shown


def _around(words: Sequence[str], starts: Sequence[int], room: int, query: str) -> int:
    """The number of the first word of the part that `excerpt` shows; `starts` are the
    places of the words and of the end."""
    asked = {_stem(word) for word in re.findall(r"\w+", query)}
    stems = [
        {_stem(part) for part in re.findall(r"\w+", word)} & asked for word in words
    ]
    most, place = 0, 0
    for number in (number for number, found in enumerate(stems) if found):
        end = bisect.bisect_right(starts, starts[number] + room * 2 // 3) - 1
        found = len(set().union(*stems[number:end]))
        if found > most:
            most, place = found, starts[number]
    place = min(place - room // 4, starts[-1] - room)  # the end fills the part, too
    return bisect.bisect_left(starts, max(0, place))


def one_line(text: str) -> str:
    """The text in one line, without characters that move the cursor of a terminal."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split())


def shortened(text: str, most: int) -> str:
    """The first `most` characters of a text; a mark stands for the rest."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _stem(word: str) -> str:
    return word.casefold()[:COMMON]


def _scored(hit: Hit) -> str:
    return f"  {hit.score:.3f}  {shortened(hit.name, 56)}  ({one_line(hit.id)})"
