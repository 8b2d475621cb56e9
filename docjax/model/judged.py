"""The queries, documents and judgements from which hard negatives are mined."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.model.search import search
from docjax.parts import named
from docjax.retrieval import bm25, collection
from docjax.storage import json_file
from docjax.types import Document, Qrels, Run


class Judged(NamedTuple):
    """What negatives are mined from; `documents` gives the corpus at every call."""

    documents: Callable[[], Iterator[Document]]
    queries: dict[str, str]
    qrels: Qrels


def by_model(
    model: DocumentModel, judged: Judged, counts: dict[str, Any]
) -> Callable[[int], Run]:
    """Ranks the documents by the model's vectors; `counts` takes what is read."""
    return lambda top: search(model, judged.documents(), judged.queries, counts, top)


def by_words(judged: Judged, counts: dict[str, Any]) -> Callable[[int], Run]:
    """Ranks the documents by BM25; `counts` takes what is read."""
    return lambda top: bm25.search(
        _counted(judged.documents(), counts), judged.queries, top=top
    )


def of_folder(folder: Path, max_bad_fraction: float) -> Judged:
    """What is judged in a folder in BEIR's layout, in all splits."""
    given = collection.read_judged(folder)
    queries = {name: given.queries[name] for name in given.test}
    documents = lambda: given.documents(max_bad_fraction)
    return Judged(documents, queries, given.test)


def of_run(run: Path) -> Judged:
    """The documents that a run trains on."""
    config = json_file.read(run / "config.json")
    source, holdout = (named.build(config[name]) for name in ("source", "holdout"))
    trained = (config["splits"]["train"], None)

    def documents() -> Iterator[Document]:
        for document in holdout(source) if holdout else source():
            if config["transductive"] or document.split in trained:
                yield document

    _, queries, qrels = collection.of_documents(documents())
    if not queries:
        raise UserError(
            f'{run}: none of its training documents has a "query": give --data a BEIR '
            "folder, or a run whose documents have one"
        )
    return Judged(documents, queries, qrels)


def _counted(
    documents: Iterable[Document], counts: dict[str, Any]
) -> Iterator[Document]:
    for document in documents:
        counts["documents"] += 1
        yield document
