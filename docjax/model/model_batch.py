"""Documents and queries as a `ModelBatch`, padded so that jit compiles few shapes.

Every axis but that of documents, or of queries, is rounded up to a power of two.
"""

from collections.abc import Sequence

import numpy as np

from docjax.data.microbatches import Group, device_graphs, microbatch, split
from docjax.errors import UserError
from docjax.types import GraphBuilder, Graphs, Microbatch, ModelBatch, Segments

LEAST_WIDTH = 8  # tokens of a row


def of_documents(
    documents: Sequence[Segments],
    limit: int,
    graph: GraphBuilder | None,
    sparse: bool,
    like: ModelBatch | None,
) -> ModelBatch:
    """The batch of tokenised documents whose segments have at most `limit` tokens.

    Args:
      sparse: whether graphs are lists of edges.
      like: a batch of documents; no axis is shorter than there.

    Raises:
      UserError: without documents, and for a `like` of queries.
    """
    if like is not None and like.rows is None:
        raise UserError("like is a batch of queries: give a batch of documents")
    counts = [len(document) for document in documents]
    rows = _power_of_two(sum(counts), len(like.tokens) if like else 1)
    read = _microbatch(documents, rows, limit, like)
    most = _power_of_two(max(counts), like.rows.shape[1] if like else 1)
    pointers = np.full((len(counts), most), -1, np.int32)
    pointers[np.arange(most) < np.array(counts)[:, None]] = np.arange(sum(counts))
    graphs = device_graphs(documents, graph, most, sparse)
    return ModelBatch(*read, pointers, _with_edges(graphs, like))


def of_queries(
    queries: Sequence[Segments], limit: int, like: ModelBatch | None
) -> ModelBatch:
    """The batch of tokenised queries, a row each; `limit` and `like` as above.

    Raises:
      UserError: without queries.
    """
    return ModelBatch(*_microbatch(queries, len(queries), limit, like))


def _microbatch(
    texts: Sequence[Segments], rows: int, limit: int, like: ModelBatch | None
) -> Microbatch:
    """The segments of all texts in their order, in an array of `rows` rows."""
    if not texts:
        raise UserError("a batch of no texts: give at least one")
    pieces = split(texts)
    lengths = np.array([len(piece) for piece in pieces], np.int32)
    least = like.tokens.shape[1] if like else LEAST_WIDTH
    width = min(_power_of_two(max(map(len, pieces)), least), limit)
    places = np.concatenate([text.places for text in texts])
    group = Group(np.arange(len(pieces)), rows, width)
    return microbatch(group, pieces, lengths, places)


def _with_edges(graphs: Graphs, like: ModelBatch | None) -> Graphs:
    """The graphs with unused edges, -1, at the end of lists of edges."""
    if graphs.edges is None:
        return graphs
    count = graphs.edges.shape[1]
    least = like.graphs.edges.shape[1] if like else 1
    unused = _power_of_two(count, least) - count
    padding = [(0, 0), (0, unused), (0, 0)]
    return Graphs(edges=np.pad(graphs.edges, padding, constant_values=-1))


def _power_of_two(number: int, least: int) -> int:
    """The first power of two that is not below `number` and `least`."""
    return 1 << (max(number, least) - 1).bit_length()
