"""Makes pairs, similar or not, from the links of documents (CoLDE, section 4).

Half of the pairs are similar, and as many are random. `docjax.data.pairs` reads and
writes the table.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from docjax.data.pairs import Pair, draw_partners, linked_alone, with_same_targets
from docjax.errors import UserError

JACCARD = 0.5  # documents that share more of their links are similar
LEAST = 2  # similar documents that a document needs: the rule of two
SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}
FEWEST = 10  # pairs of a kind, so that every split has one
Links = Mapping[str, Sequence[str]]  # document -> the ids that it links to


class Built(NamedTuple):
    """Pairs, and how many of what is not among them, by reason."""

    pairs: list[Pair]
    left_out: Counter[str]


def from_citations(links: Links, seed: int, negatives: str) -> Built:
    """Two documents are similar if either links to the other.

    negatives: "uniform": each source gets a random document of all, as CoLDE words it.
    Documents with many links then occur in similar pairs above all, so that a count of
    links tells similar pairs without any text. "targets": each target gets a random
    source, so that similar pairs and others have the same targets
    (`docjax.data.pairs.linked_pairs`).
    """
    similar = linked_alone(links)
    if negatives == "uniform":
        random = _random_targets(similar, list(links), similar, seed)
    else:
        random = with_same_targets(similar, seed)
    targets = [(name, target) for name, some in links.items() for target in some]
    known = [pair for pair in targets if pair[1] in links]
    inner = [pair for pair in known if pair[0] != pair[1]]
    repeated = len(inner) - len(similar)
    left_out = {
        "links to documents that are not there": len(targets) - len(known),
        "links of a document to itself": len(known) - len(inner),
        "links between documents that are a pair already": repeated,
    }
    return _built(links, similar, random, left_out)


def from_shared_links(links: Links, seed: int) -> Built:
    """Two documents are similar if the Jaccard similarity of their links is over 0.5.

    Only documents with at least two similar ones count, and a pair needs two of them.
    For each similar pair, the source gets a random one of these documents that is not
    similar to it.
    """
    sets = {name: set(some) - {name} for name, some in links.items()}
    alike = list(_alike({name: some for name, some in sets.items() if some}))
    counts = Counter(name for pair in alike for name in pair[:2])
    kept = [name for name in links if counts[name] >= LEAST]
    chosen = set(kept)
    similar = [pair for pair in alike if chosen.issuperset(pair[:2])]
    left_out = {
        "documents without links": sum(not some for some in sets.values()),
        "documents with one similar document": len(counts) - len(kept),
        "similar pairs with such a document": len(alike) - len(similar),
    }
    random = _random_targets(similar, kept, alike, seed)
    return _built(links, similar, random, left_out)


def _random_targets(
    similar: Sequence[Pair], targets: Sequence[str], alike: Sequence[Pair], seed: int
) -> list[Pair]:
    sources = [pair.source for pair in similar]
    drawn = draw_partners(sources, targets, alike, seed)
    return [Pair(source, target, False) for source, target in drawn]


def _built(
    links: Links, similar: list[Pair], random: list[Pair], left_out: dict[str, int]
) -> Built:
    used = {name for pair in similar + random for name in pair[:2]}
    left_out["documents without a pair"] = len(links) - len(used)
    left_out["random pairs that could not be drawn"] = len(similar) - len(random)
    return Built(similar + random, +Counter(left_out))


def _alike(links: Mapping[str, set[str]]) -> Iterator[Pair]:
    """The pairs of documents whose sets of links have a Jaccard similarity over 0.5.

    Two such sets share more than half of the links of either. So they share a link
    among the rarer half of each: only these links have an entry in the index, and a
    link that very many documents have brings few candidates.
    """
    frequency = Counter(link for some in links.values() for link in some)
    index: defaultdict[str, list[str]] = defaultdict(list)
    for name, some in links.items():
        ordered = sorted(some, key=lambda link: (frequency[link], link))
        rarer = ordered[: len(some) - math.floor(JACCARD * len(some))]
        for other in dict.fromkeys(o for link in rarer for o in index[link]):
            both = len(some & links[other])
            if both > JACCARD * (len(some) + len(links[other]) - both):
                yield Pair(other, name, True)
        for link in rarer:
            index[link].append(name)


def split(pairs: Sequence[Pair], seed: int) -> dict[str, list[Pair]]:
    """The pairs in the splits train, validation and test: 80, 10 and 10 % of each kind.

    A document may be in pairs of several splits. Raises UserError for fewer than 10
    pairs of a kind.
    """
    splits: dict[str, list[Pair]] = {name: [] for name in SHARES}
    generator = np.random.default_rng(seed)
    for kind in (True, False):
        some = [pair for pair in pairs if pair.similar is kind]
        if len(some) < FEWEST:
            raise UserError(
                f"{len(some)} pairs of documents that are {'' if kind else 'not '}"
                f"similar: at least {FEWEST} are needed to train, choose and test; give "
                'more documents with "links" to each other'
            )
        order = [some[row] for row in generator.permutation(len(some))]
        ends = np.rint(np.cumsum(list(SHARES.values())) * len(some)).astype(int)
        for name, start, end in zip(SHARES, [0, *ends], ends):
            splits[name] += order[start:end]
    return splits
