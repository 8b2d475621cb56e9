"""`docjax search`: the documents nearest to each query, exactly."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from docjax.model.document_model import DocumentModel
from docjax.retrieval import index
from docjax.types import Document, Run

TOP = 1000


def search(
    model: DocumentModel,
    documents: Iterable[Document],
    queries: Mapping[str, str],
    counts: dict[str, Any],
    top: int = TOP,
) -> Run:
    """The `top` documents of each query, as the model compares vectors.

    The documents are read once, in flat memory. `counts` takes how many there are, and
    what the model's cap leaves out.
    """
    asked = query_vectors(model, list(queries.values()))
    vectors = model.encode_once(documents, counts)
    cosine = model.similarity_fn_name == "cosine"
    return index.nearest(list(queries), asked, vectors, top, cosine=cosine)


def query_vectors(
    model: DocumentModel, texts: Sequence[str]
) -> Float[np.ndarray, "q d"]:
    """Query vectors; a text longer than the model's queries is read as a document."""
    if not len(texts):
        return model.encode_queries(texts)
    special = len(model.tokenizer.prefix) + len(model.tokenizer.suffix)
    room = min(model.limits.query_tokens, model.limits.segment_tokens) - special
    long = np.array([len(ids) > room for ids in model.tokenizer.encode(texts)])
    vectors: list[Any] = [None] * len(texts)
    for which, encode in ((~long, model.encode_queries), (long, model.encode)):
        rows = np.flatnonzero(which)
        some = encode([texts[row] for row in rows]) if len(rows) else ()
        for row, vector in zip(rows, some, strict=True):
            vectors[row] = vector
    return np.stack(vectors)
