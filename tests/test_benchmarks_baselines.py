"""The vectors of libraries and of BERT, against what they are said to be."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from sklearn.feature_extraction.text import TfidfVectorizer

import docjax
from benchmarks import baselines
from docjax import config as config_lib
from docjax.data.units import Sentences
from docjax.data.word_tokenizer import split
from docjax.run.prepare import prepare
from docjax.run.prepared import Prepared
from docjax.types import Embeddings

TEXTS = [
    "Good films are good. Is this one good?",
    "A bad film! Such a bad one.",
    "No label is known of this film.",
    "Good one. Good film.",
    "A bad, bad film",
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Prepared:
    """Five documents, one of them without label."""
    folder = tmp_path_factory.mktemp("words")
    rows = [
        {"id": str(i), "text": text, "split": "test" if i > 2 else "train"}
        for i, text in enumerate(TEXTS)
    ]
    for i, label in {0: "good", 1: "bad", 3: "good", 4: "bad"}.items():
        rows[i]["label"] = label
    path = folder / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = config_lib.load("deca", variant="smoke")
    config.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(path))
    config.tokenizer.train.least_count = 1
    return prepare(config, folder / "run")


def test_tfidf_is_that_of_scikit_learn(prepared):
    oracle = TfidfVectorizer(analyzer=split)
    expected = oracle.fit_transform(TEXTS).toarray()
    found = baselines.tfidf(prepared).toarray()
    assert not found[:, 0].any() and found.shape[1] == expected.shape[1] + 1
    for word, column in oracle.vocabulary_.items():
        own = prepared.tokenizer.backend.token_to_id(f"\u2581{word}")
        np.testing.assert_allclose(found[:, own], expected[:, column], atol=1e-6)


def test_sparse_vectors_have_the_tasks_of_raw_features(prepared):
    found = baselines.of_library("tfidf", prepared)
    assert set(found) == {"classification/accuracy", "clustering/nmi"}
    assert found["classification/accuracy"] == 1


def test_sparse_vectors_have_a_cluster_for_every_class(monkeypatch):
    """For that of test documents alone, too, as all others have."""
    asked = []
    whole = baselines.assign
    monkeypatch.setattr(
        baselines,
        "assign",
        lambda *given, **rest: asked.append(given[2]) or whole(*given, **rest),
    )
    parts = {
        "train": Embeddings(scipy.sparse.eye(4, format="csr"), list("aabb")),
        "test": Embeddings(scipy.sparse.eye(4, format="csr"), list("aacc")),
    }
    baselines._of_sparse(parts, cluster=True)
    assert asked == [3]


@pytest.mark.parametrize("system", baselines.BERT)
def test_bert_gives_first_tokens_of_labelled_documents(
    prepared, minilm, monkeypatch, system
):
    """Of the whole document, or the sum of those of its sentences."""
    monkeypatch.setattr(baselines, "of_vectors", lambda vectors, _: vectors)
    found = baselines.of_bert(system, prepared, str(minilm))
    model = docjax.load(minilm)
    segment = model.encoder.segment.clone(pooling="first", normalize=False)
    params = {"params": model.params["segment"]}
    apply = jax.jit(functools.partial(segment.apply, params))

    def read(text: str):
        ids = model.tokenizer.backend.encode(text).ids
        return apply(jnp.array([ids + [0] * (16 - len(ids))]), jnp.array([len(ids)]))[0]

    for i, document in enumerate(prepared.documents()):
        if document.label is None:
            assert np.isnan(found[i]).all()
            continue
        texts = [TEXTS[i]]
        if system == "bert_st":
            texts = [one.text for one in Sentences()(document)]
            assert len(texts) == (1 if i == 4 else 2)
        np.testing.assert_allclose(found[i], sum(map(read, texts)), atol=1e-4)
