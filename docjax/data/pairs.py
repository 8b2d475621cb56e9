"""Pairs of documents, similar or not, from a table or from links.

The table is a tab-separated file whose first line is `split, source, target, label`.
Each further line holds a split, two ids, and 1 for similar or 0 for not similar.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool
from numpy.random import Generator

from docjax.data.documents import check_fits_in_table
from docjax.data.splits import CHOOSING, TUNING
from docjax.errors import UserError
from docjax.storage import atomic
from docjax.types import Document

COLUMNS = ["split", "source", "target", "label"]
LEAST_HELD_OUT = 10  # of similar and of other pairs
DRAWS = 100  # of a random partner, before all partners are searched


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
        lines = file.read_text("utf-8-sig").splitlines()
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

    known, first: the label and the line where the pair, in either order, stands first.
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


def write_pairs(file: Path, pairs: Mapping[str, Sequence[Pair]]) -> None:
    """Writes the pairs of each split as a table, which `read_pairs` reads. Raises
    UserError for an id with a tab or a line break."""
    lines = ["\t".join(COLUMNS)]
    for split, rows in pairs.items():
        for pair in rows:
            for name in pair[:2]:
                check_fits_in_table(name)
            lines.append("\t".join([split, *pair[:2], str(int(pair.similar))]))
    atomic.write_text(file, "\n".join(lines) + "\n")


def held_out(pairs: Mapping[str, Sequence[Pair]]) -> tuple[list[Pair], list[Pair]]:
    """The pairs of the split "train" to train on, and those that choose a threshold.

    Training moves the cosines of the pairs that it reads, so a threshold from them is too
    high for other pairs. If nothing else chooses it, because the table has "train" and
    one other known split, training does not read about a tenth of its pairs. These are
    the same in every table and order of lines; with fewer than LEAST_HELD_OUT of a kind
    among them, and in all other tables, there are none.
    """
    train = list(pairs.get("train", ()))
    others = pairs.keys() & {"test", *CHOOSING}
    if len(others) != 1:
        return train, []
    chosen = [pair for pair in train if _in_tenth(pair)]
    kinds = list({frozenset(pair[:2]): pair.similar for pair in chosen}.values())
    if min(kinds.count(True), kinds.count(False)) < LEAST_HELD_OUT:
        return train, []
    return [pair for pair in train if not _in_tenth(pair)], chosen


def splits_of(
    pairs: Mapping[str, Sequence[Pair]], part: str, tuning: Sequence[str] = TUNING
) -> tuple[str, str]:
    """The split of a table to train or tune on, and the split to score.

    tuning: what may tune if the split "test" is scored; else it is "train" alone.

    Raises UserError if the table lacks either split.
    """
    wanted = ("test", *CHOOSING) if part == "test" else CHOOSING
    scored = next(filter(pairs.__contains__, wanted), "")
    names = tuning if scored == "test" else ("train",)
    tuned = next(filter(pairs.__contains__, names), "")
    if not (scored and tuned):
        raise UserError(
            f'pairs of the splits "{scored or " or ".join(wanted)}" and '
            f"{' or '.join(names)} are needed; there are {', '.join(pairs) or 'none'}"
        )
    return tuned, scored


def _in_tenth(pair: Pair) -> bool:
    """Whether the pair, in either order, is in a random tenth of all pairs."""
    both = "\0".join(sorted(pair[:2])).encode("utf-8", "replace")
    return int.from_bytes(hashlib.sha256(both).digest()[:8], "big") < 2**64 // 10


def linked_pairs(documents: Iterable[Document], seed: int) -> list[Pair]:
    """All pairs of documents with a link, and as many random pairs without a link.

    A linked pair counts once, whichever document has the link. For each linked pair, a
    source is drawn that has no link from or to the same target, so that both kinds of
    pairs have the same targets (CoLDE, section 4: one random irrelevant paper for each
    similar pair). A target that has links with every source gets no random pair.
    """
    linked = linked_alone({document.id: document.links for document in documents})
    return linked + with_same_targets(linked, seed)


def with_same_targets(linked: Sequence[Pair], seed: int) -> list[Pair]:
    """For each linked pair, a random source for its target, not linked with it."""
    sources = list(dict.fromkeys(pair.source for pair in linked))
    targets = [pair.target for pair in linked]
    drawn = draw_partners(targets, sources, linked, seed)
    return [Pair(source, target, False) for target, source in drawn]


def linked_alone(links: Mapping[str, Iterable[str]]) -> list[Pair]:
    """The pairs of documents with a link between them, once whichever has the link."""
    taken: set[frozenset[str]] = set()
    linked = []
    for source, targets in links.items():
        for target in targets:
            both = frozenset((source, target))
            if target in links and target != source and both not in taken:
                taken.add(both)
                linked.append(Pair(source, target, True))
    return linked


def draw_partners(
    names: Iterable[str], partners: Sequence[str], similar: Iterable[Pair], seed: int
) -> list[tuple[str, str]]:
    """Each name with a random partner, so that every pair is new and not similar.

    A name that has no such partner is left out.
    """
    taken = {frozenset(pair[:2]) for pair in similar}
    generator = np.random.default_rng(seed)
    drawn = []
    for name in names:
        partner = _partner(name, partners, taken, generator)
        if partner is not None:
            taken.add(frozenset((name, partner)))
            drawn.append((name, partner))
    return drawn


def _partner(
    name: str, partners: Sequence[str], taken: set[frozenset], generator: Generator
) -> str | None:
    """A random partner whose pair with `name` is not in `taken`; None without any."""
    free = lambda other: other != name and frozenset((other, name)) not in taken
    for _ in range(DRAWS):
        partner = partners[generator.integers(len(partners))]
        if free(partner):
            return partner
    rest = [partner for partner in partners if free(partner)]
    return rest[generator.integers(len(rest))] if rest else None
