"""Graphs over a document: node 0 is the document, node i + 1 its segment i.

A builder takes the number of segments, the section of each segment, and the pairs of
sections that the user connected. It returns a `jraph.GraphsTuple` whose edges run both
ways and include self-loops. `docjax.encoders.graph_attention` attends over the edges.
`neighbours.py`, which exported folders have too, says which nodes are connected.
"""

import functools

import jraph
import numpy as np
from jaxtyping import Bool, Int

from docjax.data import neighbours

CACHED = 128  # segments; the full graphs up to this size take a few megabytes


def full(segments: int, sections: np.ndarray, edges: np.ndarray) -> jraph.GraphsTuple:
    """Connects every pair of the 1 + `segments` nodes."""
    return _cached(segments) if segments <= CACHED else _full(segments)


def section(
    segments: int,
    sections: np.ndarray,
    edges: np.ndarray,
    *,
    first_passage_clique: bool = True,
) -> jraph.GraphsTuple:
    """Connects the segments of each section, and the document with first segments.

    With `first_passage_clique` the document node and the first segments of all
    sections form a clique (graph-roberta, section 3.3). Without it, no edge runs
    between the first segments of different sections.
    """
    return _graph(neighbours.section(sections, edges, first_passage_clique))


def user_edges(
    segments: int, sections: np.ndarray, edges: np.ndarray
) -> jraph.GraphsTuple:
    """The section graph without its clique, plus the user's pairs of sections.

    Each pair in the document's `edges` connects all segments of one section with all
    segments of the other.
    """
    return _graph(neighbours.user_edges(sections, edges))


# The functions of neighbours.py that exported folders call.
full.exported_as = "full"
section.exported_as = "section"
user_edges.exported_as = "user_edges"


def adjacency(graph: jraph.GraphsTuple, nodes: int) -> Bool[np.ndarray, "i j"]:
    """The graph as a matrix of `nodes` rows (receivers) and columns (senders)."""
    matrix = np.zeros((nodes, nodes), bool)
    matrix[graph.receivers, graph.senders] = True
    return matrix


def edge_list(graph: jraph.GraphsTuple, edges: int) -> Int[np.ndarray, "e 2"]:
    """The graph as `edges` rows (sender, receiver); unused rows are -1."""
    pairs = np.full((edges, 2), -1, np.int32)
    pairs[: len(graph.senders)] = np.stack([graph.senders, graph.receivers], axis=1)
    return pairs


def _full(segments: int) -> jraph.GraphsTuple:
    return _graph(neighbours.full(range(segments), ()))


_cached = functools.cache(_full)


def _graph(matrix: np.ndarray) -> jraph.GraphsTuple:
    receivers, senders = np.nonzero(matrix)
    return jraph.GraphsTuple(
        nodes=None,
        edges=None,
        globals=None,
        senders=senders.astype(np.int32),
        receivers=receivers.astype(np.int32),
        n_node=np.array([len(matrix)]),
        n_edge=np.array([len(senders)]),
    )
