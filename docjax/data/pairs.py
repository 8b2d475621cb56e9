"""Pairs of documents, similar or not, from a table or from links.

The table is a tab-separated file whose first line is `split, source, target, label`.
Each further line holds a split, two ids, and 1 for similar or 0 for not similar.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from docjax.errors import UserError
from docjax.types import Document

COLUMNS = ["split", "source", "target", "label"]
DRAWS = 100  # of a random source, before all sources are searched


class Pair(NamedTuple):
    source: str
    target: str
    similar: bool


def read_pairs(file: Path) -> dict[str, list[Pair]]:
    """The pairs of each split.

    Raises:
      UserError: for a missing file, another header, a line that is not a pair, a pair
        of a document with itself, or a pair (in either order) with both labels.
    """
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read ({error})") from None
    if not lines or lines[0].split("\t") != COLUMNS:
        raise UserError(
            f"{file}, line 1: not {', '.join(COLUMNS)} with tabs between; add it"
        )
    pairs: dict[str, list[Pair]] = {}
    labels: dict[frozenset[str], tuple[bool, int]] = {}  # and the line
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split("\t")
        if len(fields) != len(COLUMNS) or fields[3] not in ("0", "1"):
            raise UserError(
                f"{file}, line {number}: {line!r} is not {', '.join(COLUMNS)} with "
                "tabs between, and label 0 or 1"
            )
        pair = Pair(fields[1], fields[2], fields[3] == "1")
        known, first = labels.setdefault(frozenset(pair[:2]), (pair.similar, number))
        _check_pair(pair, known, f"{file}, line {number}", first)
        pairs.setdefault(fields[0], []).append(pair)
    return pairs


def _check_pair(pair: Pair, known: bool, place: str, first: int) -> None:
    """Raises UserError for a document with itself, or another label than before.

    Args:
      known: the label of the pair, in either order, where it stands first.
      first: the line where it stands first.
    """
    if pair.source == pair.target:
        raise UserError(
            f"{place}: {pair.source!r} is paired with itself; a pair needs two "
            "documents: leave the line out"
        )
    if pair.similar != known:
        raise UserError(
            f"{place}: {pair.source!r} and {pair.target!r} have the label "
            f"{int(pair.similar)}, in line {first} the label {int(known)}: keep one of "
            "the lines"
        )


def check_kinds(name: str, similar: Bool[np.ndarray, " e"]) -> None:
    """Raises UserError unless pairs of both kinds are there."""
    if similar.all() or not similar.any():
        raise UserError(
            f"{len(similar)} {name} pairs, {int(similar.sum())} of them similar: "
            "both kinds are needed"
        )


def linked_pairs(documents: Iterable[Document], seed: int) -> list[Pair]:
    """All pairs of documents with a link, and as many random pairs without a link.

    A linked pair counts once, whichever document has the link. For each linked pair, a
    source is drawn that has no link from or to the same target, so that both kinds of
    pairs have the same targets (CoLDE, section 4: one random irrelevant paper for each
    similar pair). A target that has links with every source gets no random pair.
    """
    links = {document.id: document.links for document in documents}
    taken: set[tuple[str, str]] = set()  # both directions
    linked = []
    for source, targets in links.items():
        for target in targets:
            if target in links and target != source and (source, target) not in taken:
                taken |= {(source, target), (target, source)}
                linked.append(Pair(source, target, True))
    sources = list(dict.fromkeys(pair.source for pair in linked))
    generator = np.random.default_rng(seed)
    unlinked = []
    for _, target, _ in linked:
        source = _unlinked(target, sources, taken, generator)
        if source is not None:
            taken |= {(source, target), (target, source)}
            unlinked.append(Pair(source, target, False))
    return linked + unlinked


def _unlinked(
    target: str,
    sources: list[str],
    taken: set[tuple[str, str]],
    generator: np.random.Generator,
) -> str | None:
    """A random source whose pair with `target` is not in `taken`; None without any."""
    free = lambda source: source != target and (source, target) not in taken
    for _ in range(DRAWS):
        source = sources[generator.integers(len(sources))]
        if free(source):
            return source
    rest = [source for source in sources if free(source)]
    return rest[generator.integers(len(rest))] if rest else None
