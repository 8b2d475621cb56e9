"""Which nodes of a document's graph are connected, as a matrix; needs only NumPy.

`docjax export` copies this file into its folders, so that sentence-transformers builds
the graphs of docjax; docjax itself calls this file from `graphs.py`.

Node 0 is the document, node i + 1 its segment i. `sections` has the section of each
segment, `edges` the pairs of sections that the user connected. A matrix is True where
the node of the row receives from the node of the column.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

Sections = Sequence[int] | np.ndarray


def full(sections: Sections, edges: Any) -> np.ndarray:
    """Every pair of nodes."""
    nodes = len(sections) + 1
    return np.ones((nodes, nodes), bool)


def section(
    sections: Sections, edges: Any, first_passage_clique: bool = True
) -> np.ndarray:
    """The segments of each section, and the document with first segments.

    With `first_passage_clique` also the first segments of all sections.
    """
    numbers = np.asarray(sections)
    matrix = np.eye(len(numbers) + 1, dtype=bool)
    matrix[1:, 1:] |= numbers[:, None] == numbers[None, :]
    first = np.ones(len(numbers), bool)
    first[1:] = numbers[1:] != numbers[:-1]
    nodes = np.concatenate([[0], 1 + np.flatnonzero(first)])
    matrix[0, nodes] = matrix[nodes, 0] = True
    if first_passage_clique:
        matrix[np.ix_(nodes, nodes)] = True
    return matrix


def user_edges(sections: Sections, edges: Any) -> np.ndarray:
    """`section` without its clique, and the segments of both sections of each pair."""
    numbers = np.asarray(sections)
    matrix = section(sections, edges, first_passage_clique=False)
    for start, end in edges:
        pair = np.outer(numbers == start, numbers == end)
        matrix[1:, 1:] |= pair | pair.T
    return matrix
