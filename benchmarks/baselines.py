"""What DECA's tables compare with: document vectors of libraries and of BERT, scored.

Each function of LIBRARY takes documents as lists of words (all of them: the
methods see the texts of the test part, too) and gives their vectors, or a sparse matrix.
gensim comes with `pip install docjax[baselines]`.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score

import docjax
from docjax import config as config_lib
from docjax.data.segments import sentences_of
from docjax.data.vocabulary import vocabulary
from docjax.encoders.pooling import Sum
from docjax.prepare import Prepared
from docjax.types import Embeddings

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


LIBRARY = {
    function.__name__: function for function in (tfidf, lda, w2v_avg, pv_dbow, pv_dm)
}
BERT = ("bert", "bert_st")


def of_library(system: str, prepared: Prepared) -> dict[str, float]:
    """The tasks on the vectors of a library."""
    objective = prepared.config["objective"]
    vectors = LIBRARY[system](
        words_of(prepared),
        seed=prepared.config["seed"],
        window=objective["window"],
        negatives=objective["negatives"],
    )
    return of_vectors(vectors, prepared)


def of_bert(system: str, prepared: Prepared, transformer: str) -> dict[str, float]:
    """First tokens of a transformer: of the first 512 tokens, or of all sentences,
    summed."""
    model = docjax.load(transformer)
    segment = model.encoder.segment.clone(pooling="first", normalize=False)
    encoder = model.encoder.clone(segment=segment)
    if system == "bert":
        limits = dict(model.limits, segment_tokens=512, inference_segments=1)
        model = dataclasses.replace(model, encoder=encoder, limits=limits)
    else:
        encoder = encoder.clone(document=Sum())
        model = dataclasses.replace(model, encoder=encoder, segments=sentences_of)
    vectors = model.encode(list(prepared.documents()))
    return of_vectors(vectors, prepared)


def of_vectors(vectors, prepared: Prepared) -> dict[str, float]:
    """The tasks of a config on the vectors of all documents, dense or sparse."""
    labels, parts = prepared.corpus.labels, {}
    for part in ("train", "test"):
        rows = [i for i in prepared.rows(part) if labels[i] is not None]
        names = [labels[i] for i in rows]
        parts[part] = Embeddings(vectors[np.array(rows)], names)
    if scipy.sparse.issparse(vectors):
        return _of_sparse(parts, "clustering" in prepared.config["tasks"])
    found = {}
    for name, task in config_lib.build(prepared.config["tasks"]).items():
        found |= {f"{name}/{key}": value for key, value in task(**parts).items()}
    return found


def _of_sparse(parts: dict[str, Embeddings], cluster: bool) -> dict[str, float]:
    """The same where centring would fill the matrix: raw features alone."""
    train, test = parts["train"], parts["test"]
    probe = LogisticRegression(C=1.0, max_iter=2000).fit(train.vectors, train.labels)
    found = {"classification/accuracy": probe.score(test.vectors, test.labels)}
    if cluster:
        labels = train.labels + test.labels
        kmeans = KMeans(len(set(train.labels)), n_init=10, random_state=0)
        assigned = kmeans.fit_predict(
            scipy.sparse.vstack([train.vectors, test.vectors])
        )
        found["clustering/nmi"] = normalized_mutual_info_score(labels, assigned)
    return found


def words_of(prepared: Prepared) -> list[list[str]]:
    """The documents' words."""
    names = vocabulary(prepared.tokenizer, prepared.corpus).words
    starts, tokens = prepared.corpus.starts(), np.asarray(prepared.corpus.tokens)
    return [
        [names[i] for i in tokens[start:end].tolist()]
        for start, end in itertools.pairwise(starts)
    ]
