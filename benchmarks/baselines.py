"""The baselines of DECA's tables: document vectors of libraries and of BERT, scored.

Each function of LIBRARY takes the words of all documents of a dataset, also of the test
part, and returns vectors or a sparse matrix. gensim comes with `pip install
docjax[baselines]`.
"""

import dataclasses
import itertools
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score

import docjax
from docjax.data.segments import OneEach
from docjax.data.units import Sentences
from docjax.data.vocabulary import vocabulary
from docjax.encoders.document_defaults import DocumentDefaults
from docjax.run.prepared import Prepared
from docjax.tasks.clustering import assign
from docjax.tasks.embeddings import LabelledVectors
from docjax.tasks.runner import scores
from docjax.types import Embeddings

PASSES = 20
WIDTH = 100


def counts(prepared: Prepared) -> scipy.sparse.csr_matrix:
    """The number of times that each document (row) has each word (column)."""
    corpus = prepared.corpus
    tokens = np.asarray(corpus.tokens)
    shape = len(corpus), prepared.tokenizer.vocabulary
    found = scipy.sparse.csr_matrix(
        (np.ones(len(tokens), np.float32), tokens, corpus.starts()), shape
    )
    found.sum_duplicates()
    return found


def tfidf(prepared: Prepared) -> scipy.sparse.csr_matrix:
    """TF-IDF weights with scikit-learn's defaults."""
    return TfidfTransformer().fit_transform(counts(prepared))


def lda(prepared: Prepared) -> np.ndarray:
    """The shares of 100 topics in each document."""
    model = LatentDirichletAllocation(
        WIDTH,
        doc_topic_prior=1 / WIDTH,
        topic_word_prior=1 / WIDTH,
        max_iter=20,
        random_state=prepared.config.seed,
        n_jobs=2,
    )
    return model.fit_transform(counts(prepared)[:, 1:])  # without the padding


def w2v_avg(prepared: Prepared) -> np.ndarray:
    """Means of Word2Vec (CBOW) vectors."""
    from gensim.models import Word2Vec

    documents = words_of(prepared)
    model = Word2Vec(documents, sg=0, alpha=0.05, **_gensim(prepared))
    found = np.zeros((len(documents), WIDTH), np.float32)
    for i, words in enumerate(documents):
        if words:
            found[i] = model.wv[words].mean(axis=0)
    return found


def pv_dbow(prepared: Prepared) -> np.ndarray:
    """Paragraph vectors that predict their words."""
    return _paragraphs(prepared, dm=0)


def pv_dm(prepared: Prepared) -> np.ndarray:
    """Paragraph vectors that predict words with the words around them."""
    return _paragraphs(prepared, dm=1)


def _paragraphs(prepared: Prepared, dm: int) -> np.ndarray:
    from gensim.models.doc2vec import Doc2Vec, TaggedDocument

    documents = words_of(prepared)
    tagged = [TaggedDocument(words, [i]) for i, words in enumerate(documents)]
    model = Doc2Vec(tagged, dm=dm, **_gensim(prepared))
    return model.dv.vectors[: len(documents)]


def _gensim(prepared: Prepared) -> dict[str, Any]:
    """Keywords of all gensim models: every word of the vocabulary, no subsampling."""
    objective = prepared.config.objective.keywords
    return dict(
        vector_size=WIDTH,
        min_count=1,
        sample=0,
        epochs=PASSES,
        workers=2,
        window=objective["window"],
        negative=objective["negatives"],
        seed=prepared.config.seed,
    )


LIBRARY = {
    function.__name__: function for function in (tfidf, lda, w2v_avg, pv_dbow, pv_dm)
}
WINDOWS = ("w2v_avg", "pv_dbow", "pv_dm")  # they read window and negatives
BERT = ("bert", "bert_st")


class Sum(DocumentDefaults):
    """The sum of the segment vectors: BERT-ST sums the vectors of sentences."""

    @nn.compact
    def __call__(self, vectors, lengths, places=None, graphs=None):
        return jnp.einsum("...p,...pd->...d", (lengths > 0) * 1.0, vectors)


def of_library(system: str, prepared: Prepared) -> dict[str, float]:
    """The metrics of the tasks on the vectors of a library."""
    return of_vectors(LIBRARY[system](prepared), prepared)


def of_bert(system: str, prepared: Prepared, transformer: str) -> dict[str, float]:
    """Metrics of a transformer's first token.

    "bert" reads the first 512 tokens; "bert_st" sums the vectors of all sentences.
    """
    model = docjax.load(transformer)
    segment = model.encoder.segment.clone(pooling="first", normalize=False)
    encoder = model.encoder.clone(segment=segment, document=Sum())
    if system == "bert":
        limits = model.limits._replace(segment_tokens=512, inference_segments=1)
        model = dataclasses.replace(model, encoder=encoder, limits=limits)
    else:
        cut = dict(units=Sentences(), segments=OneEach())
        model = dataclasses.replace(model, encoder=encoder, **cut)
    documents = list(prepared.documents())
    labelled = [i for i, one in enumerate(documents) if one.label is not None]
    found = model.encode([documents[i] for i in labelled])
    vectors = np.full((len(documents), found.shape[1]), np.nan, np.float32)
    vectors[labelled] = found
    return of_vectors(vectors, prepared)


def of_vectors(vectors, prepared: Prepared) -> dict[str, float]:
    """The metrics of a config's tasks on all documents' vectors, dense or sparse."""
    labels, parts = prepared.corpus.labels, {}
    for part in ("train", "test"):
        rows = [i for i in prepared.rows(part) if labels[i] is not None]
        names = [labels[i] for i in rows]
        parts[part] = Embeddings(vectors[np.array(rows)], names)
    if scipy.sparse.issparse(vectors):
        return _of_sparse(parts, "clustering" in prepared.config.tasks)
    found = scores(prepared.tasks, LabelledVectors(parts), "test")
    return {name.removeprefix("eval/"): value for name, value in found.items()}


def _of_sparse(parts: dict[str, Embeddings], cluster: bool) -> dict[str, float]:
    """The metrics on sparse features, unscaled: centring would fill the matrix."""
    train, test = parts["train"], parts["test"]
    probe = LogisticRegression(C=1.0, max_iter=2000).fit(train.vectors, train.labels)
    found = {"classification/accuracy": probe.score(test.vectors, test.labels)}
    if cluster:
        both = scipy.sparse.vstack([train.vectors, test.vectors])
        labels = train.labels + test.labels
        assigned = assign(both, both, len(set(labels)), restarts=10, seed=0)
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
