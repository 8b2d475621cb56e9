"""The order of an epoch in which related documents share a batch where they can."""

import itertools
from collections.abc import Collection, Mapping

import numpy as np
from jaxtyping import Int

GROUP = 8  # the most documents that stand together


def order(
    documents: Int[np.ndarray, " x"],
    neighbours: Mapping[int, Collection[int]],  # by corpus row
    generator: np.random.Generator,
) -> Int[np.ndarray, " x"]:
    """All numbers from 0 to x, each document near documents related to it.

    Documents are drawn at random. Each drawn document makes a group with at most
    GROUP - 1 of its neighbours that have no group yet, in random order, so that every
    document has one place. The groups stand in random order: the last ones, whose
    neighbours had a group before, would share the last batches otherwise. `documents` are
    the corpus rows of the numbers, without repetition.
    """
    numbers = {row: number for number, row in enumerate(documents.tolist())}
    free = np.ones(len(documents), bool)
    groups: list[list[int]] = []
    for number in generator.permutation(len(documents)).tolist():
        if not free[number]:
            continue
        free[number] = False
        related = neighbours.get(int(documents[number]), ())
        near = [numbers[row] for row in sorted(related) if row in numbers]
        near = [other for other in near if free[other]]
        chosen = generator.permutation(near)[: GROUP - 1].astype(int)
        free[chosen] = False
        groups.append([number, *chosen.tolist()])
    drawn = (groups[each] for each in generator.permutation(len(groups)))
    return np.fromiter(itertools.chain.from_iterable(drawn), int)
