"""A document's sections as views: in groups, by their names, or two at random.

CoLDE, section 3.1. The units of view i are in section i: a trained model knows no other
section numbers. A document that lacks the sections is cut as `Sections` does.
"""

import dataclasses
import itertools
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.random import Generator

from docjax.errors import UserError
from docjax.types import DOCUMENT, Units
from docjax.views.ready import Ready

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Sections(Ready):
    """`count` views: consecutive sections in groups of about equal numbers of tokens.

    A document with fewer sections than views is cut between units instead.
    """

    count: int = 2

    def __post_init__(self) -> None:
        if not 2 <= self.count <= 5:
            raise UserError(f"views.count {self.count}: give 2 to 5 sections, as CoLDE")

    @property
    def kinds(self) -> tuple[str, ...]:
        return (DOCUMENT,) * self.count

    @property
    def least_units(self) -> int:
        return self.count

    def fitted(
        self, tokenizer: Any, corpus: Any, documents: np.ndarray | None = None
    ) -> "Sections":
        """These views; the log counts documents with fewer sections than views."""
        sizes = np.fromiter(map(len, corpus.headings), int)
        sizes = sizes if documents is None else sizes[documents]
        if few := int((sizes < self.count).sum()):
            logger.info(
                "%d of %d documents have fewer than %d sections: their views are cut "
                "between units, such as sentences",
                *(few, len(sizes), self.count),
            )
        return self

    def __call__(self, units: Units, generator: Generator) -> tuple[Units, ...]:
        starts = np.flatnonzero(np.diff(units.sections, prepend=-1))
        if len(starts) < self.count:
            starts = np.arange(len(units))
        cuts = [*balanced(units.offsets[starts], int(units.offsets[-1]), self.count)]
        spans = itertools.pairwise([*starts[cuts], len(units)])
        return _views(units, (np.arange(start, end) for start, end in spans))


@dataclasses.dataclass(frozen=True)
class RandomSections(Sections):
    """`count` views: distinct sections of a document, drawn anew in every epoch."""

    def __call__(self, units: Units, generator: Generator) -> tuple[Units, ...]:
        numbers = np.unique(units.sections)
        if len(numbers) < self.count:
            return super().__call__(units, generator)
        return only_sections(
            units, generator.choice(numbers, self.count, replace=False)
        )


@dataclasses.dataclass(frozen=True)
class NamedSections(Ready):
    """One view for each of `names`: the sections with that word in their heading.

    For example "introduction" and "related work". Upper and lower case count alike; a
    heading with several of the names belongs to the first of them. `fitted` finds the
    number of the name of each section of the corpus, -1 without one, and the first of
    these numbers for each document.
    """

    names: tuple[str, ...]
    named: np.ndarray | None = None  # int8
    starts: np.ndarray | None = None  # int64 [c + 1]

    def __post_init__(self) -> None:
        if not 2 <= len(self.names) <= 5:
            raise UserError(
                f"views.names, count {len(self.names)}: give 2 to 5 names, as CoLDE"
            )

    @property
    def kinds(self) -> tuple[str, ...]:
        return (DOCUMENT,) * len(self.names)

    @property
    def least_units(self) -> int:
        return len(self.names)

    def fitted(
        self, tokenizer: Any, corpus: Any, documents: np.ndarray | None = None
    ) -> "NamedSections":
        """These views for the headings of a corpus; the log counts what is missing.
        Raises UserError if none of `documents` has sections of all these names."""
        names = [name.lower() for name in self.names]
        numbers = [[_first(names, h.lower()) for h in each] for each in corpus.headings]
        rows = range(len(corpus)) if documents is None else documents.tolist()
        lacking = sum(not {*range(len(names))} <= {*numbers[row]} for row in rows)
        if lacking == len(rows):
            raise UserError(
                f"views.names {', '.join(self.names)}: none of {len(rows)} documents "
                "has sections with all these words in their headings; give other "
                "names, or docjax.views.sections.Sections"
            )
        if lacking:
            logger.warning(
                "%d of %d documents lack a section named %s: they are cut into %d "
                "groups of sections instead",
                *(lacking, len(rows), " or ".join(self.names), len(names)),
            )
        named = np.fromiter(itertools.chain.from_iterable(numbers), np.int8)
        starts = np.cumsum([0, *map(len, numbers)])
        return dataclasses.replace(self, named=named, starts=starts)

    def __call__(self, units: Units, generator: Generator) -> tuple[Units, ...]:
        own = self.named[self.starts[units.documents[0]] :]
        names = own[units.sections]
        views = [np.flatnonzero(names == i) for i in range(len(self.names))]
        if not all(map(len, views)):
            return Sections(len(self.names))(units, generator)
        return _views(units, views)


def _first(names: Sequence[str], heading: str) -> int:
    """The number of the first name that the heading contains, or -1."""
    return next((i for i, name in enumerate(names) if name in heading), -1)


def only_sections(units: Units, numbers: Int[np.ndarray, " v"]) -> tuple[Units, ...]:
    """One view for each of the sections `numbers`, in that order."""
    return _views(units, (np.flatnonzero(units.sections == each) for each in numbers))


def _views(units: Units, rows: Iterable[np.ndarray]) -> tuple[Units, ...]:
    """The units of each view as one section, of the view's number, without edges."""
    views, no_edges = [], np.zeros((0, 2), np.int32)
    for number, part in enumerate(map(units.take, rows)):
        sections = np.full(len(part), number, np.int32)
        views.append(dataclasses.replace(part, sections=sections, edges=no_edges))
    return tuple(views)


def balanced(starts: np.ndarray, total: int, groups: int) -> list[int]:
    """The first piece of each group, so that a group has about total / groups tokens.

    starts: the token at which each piece begins, ascending; at least `groups` pieces.
    """
    chosen = [0]
    for number in range(1, groups):
        least, most = chosen[-1] + 1, len(starts) - (groups - number)
        wanted = total * number / groups
        near = np.abs(starts[least : most + 1] - wanted).argmin()
        chosen.append(least + int(near))
    return chosen
