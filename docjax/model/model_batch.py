"""Documents and queries as a `ModelBatch`, padded so that jit compiles few shapes.

Every axis but that of documents, or of queries, is rounded up to a power of two.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from docjax.data.microbatches import Group, device_graphs, microbatch, split
from docjax.errors import UserError
from docjax.types import GraphBuilder, Graphs, Microbatch, ModelBatch, Segments

SMALLEST = ModelBatch(  # no axis is shorter
    np.zeros((1, 8), np.int32),
    np.zeros(1, np.int32),
    np.zeros((1, 2), np.int32),
    np.zeros((1, 1), np.int32),
    Graphs(edges=np.zeros((1, 1, 2), np.int32)),
)


def check(batch: Any, name: str) -> None:
    """Raises UserError for what is no batch; `name` says which argument it is."""
    if not isinstance(batch, ModelBatch):
        raise UserError(
            f"{name} is a {type(batch).__name__}, not a batch: give what "
            "model.batch(documents) or model.batch_queries(texts) returns"
        )


def of_documents(
    documents: Sequence[Segments],
    limit: int,
    graph: GraphBuilder | None,
    sparse: bool | None,
    like: ModelBatch | None,
) -> ModelBatch:
    """The batch of tokenised documents whose segments have at most `limit` tokens.

    Args:
      sparse: whether graphs are lists of edges; None: by their size.
      like: a batch of documents; no axis is shorter than there, and graphs are of its
        kind.

    Raises:
      UserError: without documents, and for a `like` of queries.
    """
    like = _checked(like)
    if like is not SMALLEST and graph:
        sparse = like.graphs.edges is not None
    if like.rows is None:
        raise UserError("like is a batch of queries: give a batch of documents")
    counts = [len(document) for document in documents]
    count = _power_of_two(sum(counts), len(like.tokens))
    read = _microbatch(documents, count, limit, like)
    most = _power_of_two(max(counts), like.rows.shape[1])
    rows = np.full((len(counts), most), -1, np.int32)
    rows[np.arange(most) < np.array(counts)[:, None]] = np.arange(sum(counts))
    graphs = device_graphs(documents, graph, most, sparse)
    return ModelBatch(*read, rows, _with_edges(graphs, like))


def _checked(like: ModelBatch | None) -> ModelBatch:
    """The batch, or the smallest one. Raises UserError for what is no batch."""
    if not isinstance(like, ModelBatch | None):
        raise UserError(
            f"like is a {type(like).__name__}: give what model.batch has returned"
        )
    return SMALLEST if like is None else like


def of_queries(
    queries: Sequence[Segments], limit: int, like: ModelBatch | None
) -> ModelBatch:
    """The batch of tokenised queries, a row each; `limit` and `like` as above. Raises
    UserError without queries."""
    return ModelBatch(*_microbatch(queries, len(queries), limit, _checked(like)))


def _microbatch(
    texts: Sequence[Segments], rows: int, limit: int, like: ModelBatch
) -> Microbatch:
    """The segments of all texts in their order, in an array of `rows` rows."""
    if not texts:
        raise UserError("a batch of no texts: give at least one")
    pieces = split(texts)
    width = min(_power_of_two(max(map(len, pieces)), like.tokens.shape[1]), limit)
    places = np.concatenate([text.places for text in texts])
    group = Group(np.arange(len(pieces)), rows, width)
    return microbatch(group, pieces, places)


def _with_edges(graphs: Graphs, like: ModelBatch) -> Graphs:
    """The graphs with unused edges, -1, at the end of lists of edges."""
    if graphs.edges is None or like.graphs.edges is None:
        return graphs
    count = graphs.edges.shape[1]
    unused = _power_of_two(count, like.graphs.edges.shape[1]) - count
    padding = [(0, 0), (0, unused), (0, 0)]
    return Graphs(edges=np.pad(graphs.edges, padding, constant_values=-1))


def _power_of_two(number: int, least: int) -> int:
    """The first power of two that is not below `number` and `least`."""
    return 1 << (max(number, least) - 1).bit_length()
