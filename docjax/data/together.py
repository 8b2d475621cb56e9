"""The order of an epoch in which related documents share a batch where they can."""

from collections.abc import Collection, Mapping

import numpy as np
from jaxtyping import Int

GROUP = 8  # the most documents that stand together


def order(
    documents: Int[np.ndarray, " x"],
    neighbours: Mapping[int, Collection[int]],
    generator: np.random.Generator,
) -> Int[np.ndarray, " x"]:
    """All numbers from 0 to x, each document followed by documents related to it.

    Documents are drawn at random. Each drawn document is followed by at most GROUP - 1
    of its neighbours that have no place yet, in random order, so that every document
    has one place.

    Args:
      documents: the corpus row of each number, without repetition.
      neighbours: for a corpus row the rows of related documents.
    """
    numbers = {row: number for number, row in enumerate(documents.tolist())}
    free = np.ones(len(documents), bool)
    placed: list[int] = []
    for number in generator.permutation(len(documents)).tolist():
        if not free[number]:
            continue
        free[number] = False
        related = neighbours.get(int(documents[number]), ())
        near = [numbers[row] for row in sorted(related) if row in numbers]
        near = [other for other in near if free[other]]
        chosen = generator.permutation(near)[: GROUP - 1].astype(int)
        free[chosen] = False
        placed += [number, *chosen.tolist()]
    return np.array(placed, int)
