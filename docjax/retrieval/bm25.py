"""BM25 by bm25s: English words, stemmed, without stop words."""

import logging
from collections.abc import Iterable, Mapping
from types import ModuleType

from docjax.data.documents import full_text
from docjax.errors import UserError
from docjax.types import Document, Run


def search(
    documents: Iterable[Document],
    queries: Mapping[str, str],
    *,
    top: int = 1000,
    k1: float = 1.5,
    b: float = 0.75,
) -> Run:
    """The `top` documents of each query that share a word with it.

    Args:
      k1: how much repetitions of a word count; 0: not at all.
      b: how much the length of a document lowers its score, from 0 to 1.

    Raises:
      UserError: if bm25s or PyStemmer is not installed, or no document has a word.
    """
    bm25s, stemmer = libraries()
    split = lambda texts: bm25s.tokenize(
        texts, stopwords="en", stemmer=stemmer.Stemmer("english"), show_progress=False
    )
    ids, texts = [], []
    for document in documents:
        ids.append(document.id)
        texts.append(full_text(document))
    words = split(texts)
    if not any(map(len, words.ids)):
        raise UserError(
            f"BM25: none of {len(ids)} documents has a word besides English stop words"
        )
    index = bm25s.BM25(k1=k1, b=b)
    index.index(words, show_progress=False)
    rows, scores = index.retrieve(
        split(list(queries.values())), k=min(top, len(ids)), show_progress=False
    )
    return {
        query: {ids[i]: float(s) for i, s in zip(row, score, strict=True) if s > 0}
        for query, row, score in zip(queries, rows, scores, strict=True)
    }


def libraries() -> tuple[ModuleType, ModuleType]:
    """bm25s and PyStemmer. Raises UserError if either is not installed."""
    try:
        import bm25s
        import Stemmer
    except ImportError as error:
        raise UserError(
            f"BM25 needs {error.name}: pip install 'docjax[retrieval]'"
        ) from None
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it logs every step
    return bm25s, Stemmer
