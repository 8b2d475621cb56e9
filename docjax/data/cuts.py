"""Where segments begin and end in the tokens of units; needs only Python.

`docjax export` copies this file into its folders, so that sentence-transformers
cuts documents as docjax does; docjax calls it through `segments.py`.

The units lie one after the other in one list of tokens. A segment is a span of that
list: (first token, end, section). No span is longer than `room`, and no token is lost.
Units without any token give one empty span.
"""

from collections.abc import Iterable, Iterator, Sequence

Span = tuple[int, int, int]


def one_each(
    lengths: Sequence[int], sections: Sequence[int], room: int
) -> Iterator[Span]:
    """One span for each unit; a unit longer than `room` gets several spans."""
    return _split(_units(lengths, sections), room)


def joined(
    lengths: Sequence[int],
    sections: Sequence[int],
    room: int,
    across_sections: bool = True,
) -> Iterator[Span]:
    """Each span takes further units while they fit into `room`.

    A span over several sections has the section of its first unit.
    """

    def fits(group: Span, unit: Span) -> bool:
        same = across_sections or group[2] == unit[2]
        return same and unit[1] - group[0] <= room

    return _split(_grouped(_units(lengths, sections), fits), room)


def chunks(
    lengths: Sequence[int], sections: Sequence[int], room: int
) -> Iterator[Span]:
    """Each section in consecutive spans of `room` tokens; the last may be shorter."""
    same = lambda group, unit: group[2] == unit[2]
    return _split(_grouped(_units(lengths, sections), same), room)


def _units(lengths: Sequence[int], sections: Sequence[int]) -> Iterator[Span]:
    start = 0
    for length, section in zip(lengths, sections):
        yield start, start + length, section
        start += length


def _grouped(units: Iterable[Span], fits) -> Iterator[Span]:
    """Joins neighbouring units: a span grows while the next unit `fits`."""
    group, yielded = None, False
    for unit in units:
        if group is not None and fits(group, unit):
            group = group[0], unit[1], group[2]
            continue
        if group is not None and group[1] > group[0]:
            yielded = True
            yield group
        group = unit
    if group is not None and (group[1] > group[0] or not yielded):
        yield group


def _split(spans: Iterable[Span], room: int) -> Iterator[Span]:
    """The spans; a span longer than `room` becomes several."""
    for start, end, section in spans:
        for first in range(start, max(end, start + 1), room):
            yield first, min(first + room, end), section
