"""`docjax search`: the documents nearest to each query, exactly."""

from collections.abc import Iterable, Mapping
from typing import Any

from docjax.model.document_model import DocumentModel
from docjax.retrieval import systems
from docjax.types import Document, Run

TOP = 1000


def search(
    model: DocumentModel,
    documents: Iterable[Document],
    queries: Mapping[str, str],
    counts: dict[str, Any],
    top: int = TOP,
) -> Run:
    """The `top` documents of each query, by the similarity of the model's training.

    The documents are read once, in constant memory. `counts` receives their number and
    what the model's cap leaves out.

    Raises:
      UserError: for a query or a document whose vector is not finite.
    """
    encode = model.encode_queries_of_any_length
    vectors = systems.read_queries(queries, encode, passages=False)
    encoded = model.encode_once(documents, counts)
    cosine = model.similarity_fn_name == "cosine"
    found = systems.by_vectors(list(queries), vectors, encoded, top, cosine=cosine)
    return found["dense"]
