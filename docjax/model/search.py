"""`docjax search`: the documents nearest to each query, in a corpus or in an index."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.retrieval import systems
from docjax.retrieval.index_folder import Index
from docjax.retrieval.systems import QueryVectors
from docjax.types import Document, Encoded, Run

TOP = 1000
SHOWN = 10  # documents of a query whose texts are shown


def search(
    model: DocumentModel,
    documents: Iterable[Document],
    queries: Mapping[str, str],
    counts: dict[str, Any],
    top: int = TOP,
    encode: Callable[..., Iterator[Encoded]] | None = None,
) -> Run:
    """The `top` documents of each query, by the similarity of the model's training.

    The documents are read once, in constant memory. `counts` receives their number and
    what the model's cap leaves out. `encode` encodes the documents, as `encode_once` of
    the model, which is the default.

    Raises:
      UserError: for a query or a document whose vector is not finite.
    """
    vectors = query_vectors(model, queries, "dense")
    encoded = (encode or model.encode_once)(documents, counts)
    cosine = model.similarity_fn_name == "cosine"
    found = systems.by_vectors(list(queries), vectors, encoded, top, cosine=cosine)
    return found["dense"]


def search_index(
    model: DocumentModel,
    index: Index,
    queries: Mapping[str, str],
    system: str,
    top: int = TOP,
    weight: float = 0.5,
    scale: str = "min-max",
    vectors: QueryVectors | None = None,
) -> Run:
    """The `top` documents of each query, by a system of `docjax.retrieval.systems`.

    Args:
      weight, scale: the share of the vectors in a fused system, and how it scales scores
        (`docjax.retrieval.fusion.fuse`).
      vectors: of the queries, if they were encoded before.

    Raises:
      UserError: for an unknown system, and if the index lacks passages.
    """
    check_system(system)
    if not queries:
        return {}
    if vectors is None and system != "bm25":
        vectors = query_vectors(model, queries, system)
    return index.search(system, queries, vectors, top, weight, scale)


def check_system(system: str) -> None:
    """Raises UserError for a system that no index has."""
    if system not in systems.NAMES:
        raise UserError(f"system {system} is none of {', '.join(systems.NAMES)}")


def query_vectors(
    model: DocumentModel, queries: Mapping[str, str], system: str
) -> QueryVectors:
    """The vectors of the queries that a system compares. Raises UserError for a vector
    that is not finite."""
    encode = model.encode_queries_of_any_length
    return systems.read_queries(queries, encode, system.endswith("maxsim"))


def hits(
    model: DocumentModel,
    index: Index,
    queries: Mapping[str, str],
    vectors: QueryVectors,
    ranking: Run,
    most: int = SHOWN,
) -> Iterator[dict[str, Any]]:
    """For each query its first `most` documents, each with title and best passage.

    The best passage is the nearest one to the query. "maxp" has ranked the document by
    this passage; other systems may have ranked it by other words. Query vectors with
    sentences ("maxsim") also give each sentence with its nearest passage, whose scores
    they add up.

    Args:
      ranking: what a search in `index` has found. Where the index has no passages, the
        model reads the documents that are shown again.

    Raises:
      UserError: if the index has other passages than the model reads.
    """
    rows = index.ids.rows  # of those that the search has found
    for number, (query, text) in enumerate(queries.items()):
        sentences = []  # with their vectors, without those that are zero
        if vectors.sentences is not None:
            pairs = zip(systems.parts_of(text), vectors.sentences[number])
            sentences = [
                (sentence, vector) for sentence, vector in pairs if vector.any()
            ]
        asked = vectors.whole[number], sentences
        found = dict(list(ranking.get(query, {}).items())[:most])
        chosen = [rows[name] for name in found]
        documents = [index.document(row) for row in chosen]
        passages = _passages(model, index, chosen, documents)
        shown = [
            _shown(model, index, document, part, *asked)
            for document, part in zip(documents, passages, strict=True)
        ]
        yield {
            "query": query,
            "text": text,
            "hits": [
                {"id": name, "score": score, **facts}
                for (name, score), facts in zip(found.items(), shown, strict=True)
            ],
        }


def _passages(
    model: DocumentModel,
    index: Index,
    rows: Sequence[int],
    documents: Sequence[Document],
) -> list[np.ndarray]:
    """The vectors of the passages of each of these documents of an index."""
    if not index.facts["passages"]:
        read = model.encode_with_passages(documents, {})
        return [passages for _, passages in read]
    starts = index.starts
    return [index.passages[starts[row] : starts[row + 1]] for row in rows]


def _shown(
    model: DocumentModel,
    index: Index,
    document: Document,
    vectors: np.ndarray,
    whole: np.ndarray,
    sentences: Sequence[tuple[str, np.ndarray]],
) -> dict[str, Any]:
    """The title of a document and its best passages for one query."""
    _, pieces = model.cut.with_texts(document)
    read = len(pieces[: model.limits.inference_segments])
    if read != len(vectors):
        raise UserError(
            f"{index.folder}: document {document.id!r} has {len(vectors)} passages there, "
            f"but this docjax reads {read} segments of it: delete the folder and run docjax "
            "index again"
        )
    headings = [section.heading for section in document.sections] or [""]

    def nearest(query: np.ndarray) -> dict[str, Any]:
        scores = model.similarity(query, vectors)[0]
        best = int(scores.argmax())
        return {
            "section": headings[pieces[best].section],
            "passage": pieces[best].text,
            "passage_score": float(scores[best]),
        }

    shown = {"title": document.title} | nearest(whole)
    if sentences:
        shown["sentences"] = [
            {"sentence": sentence} | nearest(vector) for sentence, vector in sentences
        ]
    return shown
