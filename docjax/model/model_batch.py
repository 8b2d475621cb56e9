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
    counts = np.array([len(document) for document in documents])
    least_rows, least_most = (len(like.tokens), like.rows.shape[1]) if like else (0, 0)
    count = _power_of_two(counts.sum(), least_rows)
    read = _microbatch(documents, count, limit, like)
    most = _power_of_two(counts.max(), least_most)
    rows = np.full((len(counts), most), -1, np.int32)
    rows[np.arange(most) < counts[:, None]] = np.arange(counts.sum())
    graphs = device_graphs(documents, graph, most, sparse)
    if graphs.edges is not None:
        least = like.graphs.edges.shape[1] if like else 0
        unused = _power_of_two(graphs.edges.shape[1], least) - graphs.edges.shape[1]
        padding = [(0, 0), (0, unused), (0, 0)]
        graphs = Graphs(edges=np.pad(graphs.edges, padding, constant_values=-1))
    return ModelBatch(*read, rows, graphs)


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
    pieces = split(texts)
    lengths = np.array([len(piece) for piece in pieces], np.int32)
    least = like.tokens.shape[1] if like else LEAST_WIDTH
    width = min(_power_of_two(lengths.max(), least), limit)
    places = np.concatenate([text.places for text in texts])
    group = Group(np.arange(len(pieces)), rows, width)
    return microbatch(group, pieces, lengths, places)


def _power_of_two(number: int, least: int) -> int:
    """The first power of two that is not below `number` and `least`."""
    return 1 << max(int(number) - 1, least - 1, 0).bit_length()
