"""What hard negatives are mined from: a run's judged queries, and rankings."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.model.search import search
from docjax.retrieval import bm25, bm25_files, collection
from docjax.retrieval.collection import Judged
from docjax.run.corpora import trained_on
from docjax.run.fields import read
from docjax.types import Document, Encoded, Run


def of_run(run: Path, allow: Sequence[str] = ()) -> Judged:
    """The documents that a run trains on, with their own queries.

    Raises:
      UserError: if there is no run, or no training document has a query.
    """
    documents = functools.partial(trained_on, read(run, allow))
    _, queries, qrels = collection.of_documents(documents())
    if not queries:
        raise UserError(
            f'{run}: no training document has a "query"; give --data a collection, '
            "or a run whose documents have queries"
        )
    return Judged(documents, queries, qrels)


def by_model(
    model: DocumentModel,
    judged: Judged,
    counts: dict[str, Any],
    encode: Callable[..., Iterator[Encoded]] | None = None,
) -> Callable[[int], Run]:
    """Ranks the documents by the model's vectors; adds to `counts` what it reads.

    encode: as `search` takes it.
    """
    return lambda top: search(
        model, judged.documents(), judged.queries, counts, top, encode
    )


def by_words(
    judged: Judged, counts: dict[str, Any], settings: bm25.Settings
) -> Callable[[int], Run]:
    """Ranks the documents by BM25; adds to `counts` the documents it reads."""
    return lambda top: bm25_files.search(
        _counted(judged.documents(), counts),
        judged.queries,
        top=top,
        settings=settings,
    )


def _counted(
    documents: Iterable[Document], counts: dict[str, Any]
) -> Iterator[Document]:
    for document in documents:
        counts["documents"] += 1
        yield document
