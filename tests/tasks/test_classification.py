"""The linear probe and the trained head's score against hand-computed numbers."""

import logging

import numpy as np
import pytest

from docjax.errors import UserError
from docjax.tasks.classification import EndToEnd, Linear, score
from docjax.tasks.embeddings import LabelledVectors
from docjax.types import Embeddings


def gaussians(documents: int, seed: int, scale: float = 1.0) -> Embeddings:
    """Three classes whose means differ in 5 dimensions."""
    generator = np.random.default_rng(seed)
    classes = generator.integers(0, 3, documents)
    means = 2 * np.eye(3, 5)[classes]
    vectors = scale * (means + generator.normal(size=(documents, 5)))
    return Embeddings(vectors.astype(np.float32), ["abc"[i] for i in classes])


def test_macro_f1_is_the_mean_over_classes_computed_by_hand():
    scores = score(list("aaabbc"), list("aabbba"))
    f1_a, f1_b, f1_c = 2 * 2 / (3 + 3), 2 * 2 / (2 + 3), 0
    assert scores["accuracy"] == pytest.approx(4 / 6)
    assert scores["macro_f1"] == pytest.approx((f1_a + f1_b + f1_c) / 3)


def test_the_probe_agrees_with_newtons_method_on_standardised_features():
    train, test = gaussians(200, 0), gaussians(300, 1)
    train = train._replace(labels=["a" if x == "a" else "b" for x in train.labels])
    test = test._replace(labels=["a" if x == "a" else "b" for x in test.labels])
    mean, deviation = train.vectors.mean(0), train.vectors.std(0)
    x, z = ((v - mean) / deviation for v in (train.vectors, test.vectors))
    x, z = (np.concatenate([v, np.ones((len(v), 1))], 1) for v in (x, z))
    y = np.array(train.labels) == "b"
    weights, penalty = np.zeros(6), np.diag([1.0] * 5 + [0])
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ weights))
        hessian = (x * (p * (1 - p))[:, None]).T @ x + penalty
        weights -= np.linalg.solve(hessian, x.T @ (p - y) + penalty @ weights)
    expected = np.mean((z @ weights > 0) == (np.array(test.labels) == "b"))
    accuracy = Linear().score(train, test)["accuracy"]
    assert accuracy == pytest.approx(expected, abs=1 / 300)


def test_the_scale_of_the_vectors_does_not_matter():
    train, test = gaussians(200, 0), gaussians(300, 1)
    large = Linear().score(gaussians(200, 0, scale=1e4), gaussians(300, 1, scale=1e4))
    assert Linear().score(train, test) == large
    assert large["accuracy"] > 0.7


def test_features_as_they_are_weigh_by_their_scale():
    """A wide feature without use drowns a narrow one that tells the classes apart."""
    generator = np.random.default_rng(0)
    labels = list("ab") * 100
    narrow = 1e-4 * (np.array(labels) == "a") + 1e-6 * generator.normal(size=200)
    wide = 10 * generator.normal(size=200)
    both = Embeddings(np.stack([narrow, wide], 1).astype(np.float32), labels)
    assert Linear().score(both, both)["accuracy"] == 1
    assert Linear(standardize=False).score(both, both)["accuracy"] < 0.8


def test_a_dimension_that_never_changes_does_no_harm():
    train, test = gaussians(200, 0), gaussians(300, 1)
    constant = [e._replace(vectors=e.vectors.copy()) for e in (train, test)]
    for embeddings in constant:
        embeddings.vectors[:, 4] = 3
    assert Linear().score(*constant)["accuracy"] > 0.7


def test_more_dimensions_than_documents_converge_without_a_warning():
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(60, 300)).astype(np.float32)
    train = Embeddings(vectors, list("abcdef") * 10)
    assert Linear().score(train, train) == {"accuracy": 1, "macro_f1": 1}


def test_not_converging_is_logged(caplog):
    with caplog.at_level(logging.WARNING):
        Linear(iterations=1).score(gaussians(200, 0), gaussians(300, 1))
    assert "linear probe: lbfgs failed to converge" in caplog.text


def test_a_label_that_train_never_has_counts_as_wrong_and_is_logged(caplog):
    train, test = gaussians(200, 0), gaussians(300, 1)
    before = Linear().score(train, test)
    labels = ["new"] * 30 + test.labels[30:]
    with caplog.at_level(logging.WARNING):
        scores = Linear().score(train, test._replace(labels=labels))
    assert "30 of 300 test documents" in caplog.text and "'new'" in caplog.text
    assert scores["accuracy"] < before["accuracy"]
    assert scores["macro_f1"] < before["macro_f1"] * 3 / 4 + 1e-9  # a class at 0


def test_end_to_end_scores_the_predictions_of_the_head():
    test = gaussians(6, 1)._replace(labels=list("aaabbc"))
    scores = EndToEnd().score(test._replace(predictions=list("aabbba")))
    assert scores == score(list("aaabbc"), list("aabbba"))


def test_a_user_is_told_what_is_wrong():
    good = gaussians(20, 0)
    one_class = good._replace(labels=["a"] * 20)
    broken = good._replace(vectors=np.full((20, 5), np.inf, np.float32))
    with pytest.raises(UserError, match="all 20 train documents have the label 'a'"):
        Linear().score(one_class, good)
    with pytest.raises(UserError, match="20 of 20 test vectors are not finite"):
        Linear().score(good, broken)
    with pytest.raises(UserError, match="no classification head.*Linear"):
        EndToEnd().score(good)
    with pytest.raises(UserError, match="2 predictions for 20 test documents"):
        EndToEnd().score(good._replace(predictions=["a", "b"]))


def test_predictions_are_made_once_for_scores_and_outcomes(monkeypatch):
    """Other vectors, labels or settings are other predictions."""
    calls, predict = [], Linear.predict

    def counted(self, *arguments):
        calls.append(self)
        return predict(self, *arguments)

    monkeypatch.setattr(Linear, "predict", counted)
    generator = np.random.default_rng(123)
    vectors = generator.normal(size=(30, 3)).astype("f4")
    labels = [str(i % 2) for i in range(30)]
    train, test = Embeddings(vectors, labels), Embeddings(vectors + 1, labels)
    data = LabelledVectors({"train": train, "test": test})
    accuracy = Linear()(data, "test")["accuracy"]
    [outcome] = Linear().outcomes(data, "test").values()
    assert np.mean(outcome.values) == accuracy and len(calls) == 1
    for other in (test._replace(vectors=vectors), test._replace(vectors=2 * vectors)):
        Linear().score(train, other)
    Linear().score(train._replace(labels=labels[::-1]), test)
    Linear(standardize=False).score(train, test)
    assert len(calls) == 5
    Linear().score(train, test._replace(labels=labels[::-1]))  # the same predictions
    assert len(calls) == 5
