"""`docjax search`: the documents nearest to each query, exactly."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from docjax.model.document_model import DocumentModel
from docjax.retrieval import systems
from docjax.types import Document, Encoded, Run

TOP = 1000


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
    what the model's cap leaves out.

    encode: encodes the documents, as `encode_once` of the model, which is the default.

    Raises:
      UserError: for a query or a document whose vector is not finite.
    """
    of_queries = model.encode_queries_of_any_length
    vectors = systems.read_queries(queries, of_queries, passages=False)
    encoded = (encode or model.encode_once)(documents, counts)
    cosine = model.similarity_fn_name == "cosine"
    found = systems.by_vectors(list(queries), vectors, encoded, top, cosine=cosine)
    return found["dense"]
