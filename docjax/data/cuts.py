"""Where segments begin and end in the tokens of units; needs only Python.

`docjax export` copies this file into its folders, so that sentence-transformers
cuts documents as docjax does; docjax calls it through `segments.py`.

The units lie one after the other in one list of tokens. A segment is a span of that
list: (first token, end, section). No span is longer than `room`, and no token is lost.
Units without any token give one empty span.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

Numbers = Sequence[int]
Span = tuple[int, int, int]
RULES = 2  # changes with the spans of any units: a model's fingerprint has it


def one_each(lengths: Numbers, sections: Numbers, room: int) -> Iterator[Span]:
    """One span for each unit; a unit longer than `room` gets several spans."""
    return _split(_units(lengths, sections), room)


def joined(
    lengths: Numbers, sections: Numbers, room: int, across_sections: bool = True
) -> Iterator[Span]:
    """Each span takes further units while they fit into `room`.

    A unit of `room` tokens or more, which no span holds with another, is cut where the
    span before it is full: a text without an end of a sentence follows its title. So is
    the unit after it, which is the rest of such a text. A span over several sections
    has the section of its first unit.
    """

    def takes(left: int, size: int, before: int) -> bool:
        return size <= left or max(size, before) >= room

    return _filled(_units(lengths, sections), room, across_sections, takes)


def chunks(lengths: Numbers, sections: Numbers, room: int) -> Iterator[Span]:
    """Each section in consecutive spans of `room` tokens; the last may be shorter."""
    return _filled(_units(lengths, sections), room, False, lambda *_: True)


def _units(lengths: Numbers, sections: Numbers) -> Iterator[Span]:
    start = 0
    for length, section in zip(lengths, sections):
        yield start, start + length, section
        start += length


def _filled(
    units: Iterable[Span],
    room: int,
    across_sections: bool,
    takes: Callable[[int, int, int], bool],
) -> Iterator[Span]:
    """Spans of neighbouring units, of at most `room` tokens.

    takes: called with the tokens that a span has room for, the size of the next unit,
    and that of the unit before it in the same section (0 without one): whether the span
    takes that unit. What does not fit goes on in further spans.
    """
    last: Span | None = None
    before = 0, 0  # section and size of the unit before
    for start, end, section in units:
        size = end - start
        if last and (across_sections or section == last[2]):
            left = room - (last[1] - last[0])
            if takes(left, size, before[1] if section == before[0] else 0):
                start = min(end, start + left)
                last = last[0], start, last[2]
        before = section, size
        if start == end and last:
            continue
        if last and last[1] > last[0]:
            yield last
        *whole, last = _split([(start, end, section)], room)
        yield from whole
    if last:
        yield last


def _split(spans: Iterable[Span], room: int) -> Iterator[Span]:
    """The spans; a span longer than `room` becomes several."""
    for start, end, section in spans:
        for first in range(start, max(end, start + 1), room):
            yield first, min(first + room, end), section
