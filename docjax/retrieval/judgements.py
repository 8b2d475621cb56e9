"""Lines of judgements become judgements; wherever they come from, the mistakes are told."""

from collections.abc import Container, Iterable
from typing import NamedTuple

from docjax.errors import UserError
from docjax.types import Qrels


class Judgement(NamedTuple):
    """A line of judgements; `place` names it in errors."""

    place: str
    query: str
    document: str
    gain: int


def gathered(
    judgements: Iterable[Judgement], queries: Container[str] | None = None
) -> Qrels:
    """The judgements of each query.

    Args:
      queries: the ids that a query may have; None: any.

    Raises:
      UserError: for a judgement that comes twice, and for a judged query that is not in
        `queries`.
    """
    qrels: Qrels = {}
    for place, query, document, gain in judgements:
        if queries is not None and query not in queries:
            raise UserError(
                f"{place}: no query has the id {query!r}: add the query, or remove "
                "this line"
            )
        gains = qrels.setdefault(query, {})
        if document in gains:
            raise UserError(
                f"{place}: query {query!r} and document {document!r} were judged "
                "before: remove one line"
            )
        gains[document] = gain
    return qrels
