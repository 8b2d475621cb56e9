"""Document vectors of the libraries that DECA's tables compare with.

Each function takes documents as lists of words (all of them: the methods see the texts
of the test part, too) and gives their vectors, or a sparse matrix. gensim comes with
`pip install docjax[baselines]`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer

Documents = Sequence[Sequence[str]]
PASSES = 20
WIDTH = 100


def counts(documents: Documents) -> scipy.sparse.csr_matrix:
    """How often each document has each word."""
    ids: dict[str, int] = {}
    columns = [ids.setdefault(word, len(ids)) for words in documents for word in words]
    starts = np.cumsum([0, *map(len, documents)])
    shape = len(documents), len(ids)
    found = scipy.sparse.csr_matrix((np.ones(len(columns)), columns, starts), shape)
    found.sum_duplicates()
    return found


def tfidf(documents: Documents, **_: Any) -> scipy.sparse.csr_matrix:
    """As scikit-learn weighs counts."""
    return TfidfTransformer().fit_transform(counts(documents))


def lda(documents: Documents, *, seed: int, **_: Any) -> np.ndarray:
    """Shares of 100 topics."""
    model = LatentDirichletAllocation(
        WIDTH,
        doc_topic_prior=1 / WIDTH,
        topic_word_prior=1 / WIDTH,
        max_iter=20,
        random_state=seed,
        n_jobs=2,
    )
    return model.fit_transform(counts(documents))


def w2v_avg(
    documents: Documents, *, window: int, negatives: int, seed: int, **_: Any
) -> np.ndarray:
    """Means of the vectors of Word2Vec (CBOW)."""
    from gensim.models import Word2Vec

    model = Word2Vec(
        documents,
        sg=0,
        window=window,
        negative=negatives,
        seed=seed,
        alpha=0.05,
        **_gensim(),
    )
    found = np.zeros((len(documents), WIDTH), np.float32)
    for i, words in enumerate(documents):
        if words:
            found[i] = model.wv[list(words)].mean(axis=0)
    return found


def pv_dbow(documents: Documents, **keywords: Any) -> np.ndarray:
    """Paragraph vectors that predict their words."""
    return _paragraphs(documents, dm=0, **keywords)


def pv_dm(documents: Documents, **keywords: Any) -> np.ndarray:
    """Paragraph vectors that predict words with the words around them."""
    return _paragraphs(documents, dm=1, **keywords)


def _paragraphs(
    documents: Documents, *, dm: int, window: int, negatives: int, seed: int, **_: Any
) -> np.ndarray:
    from gensim.models.doc2vec import Doc2Vec, TaggedDocument

    tagged = [TaggedDocument(words, [i]) for i, words in enumerate(documents)]
    model = Doc2Vec(
        tagged, dm=dm, window=window, negative=negatives, seed=seed, **_gensim()
    )
    return model.dv.vectors[: len(documents)]


def _gensim() -> dict[str, Any]:
    """Of all its models: every word of the vocabulary, no subsampling."""
    return dict(vector_size=WIDTH, min_count=1, sample=0, epochs=PASSES, workers=2)
