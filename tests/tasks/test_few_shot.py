"""Draws are balanced and repeatable, and more of them are no worse."""

import numpy as np
import pytest

from docjax.data import once
from docjax.errors import UserError
from docjax.parts.named import build
from docjax.tasks import classification, few_shot
from docjax.tasks.classification import Linear
from docjax.tasks.embeddings import LabelledVectors, NoLabels
from docjax.tasks.probe import Probe
from docjax.types import Embeddings


def gaussians(documents: int, seed: int) -> Embeddings:
    """Three classes of unequal size whose means differ in 5 dimensions."""
    generator = np.random.default_rng(seed)
    classes = generator.choice(3, documents, p=[0.6, 0.3, 0.1])
    vectors = 2 * np.eye(3, 5)[classes] + generator.normal(size=(documents, 5))
    return Embeddings(vectors.astype(np.float32), ["abc"[i] for i in classes])


def test_a_draw_has_as_many_of_each_class_and_all_test_documents_are_judged(
    monkeypatch,
):
    train, test = gaussians(200, 0), gaussians(50, 1)
    draws = []

    def score(self, part, judged):
        draws.append(part)
        assert judged is test
        return {"accuracy": float(len(draws)), "macro_f1": 0.5}

    monkeypatch.setattr(Linear, "score", score)
    found = few_shot.FewShot(shots=4, repeats=3).score(train, test)
    assert found == {
        "accuracy": 2.0,
        "accuracy_std": pytest.approx(np.std([1, 2, 3])),
        "macro_f1": 0.5,
        "macro_f1_std": 0.0,
    }
    for part in draws:
        assert sorted(part.labels) == list("aaaabbbbcccc")
        assert len(np.unique(part.vectors, axis=0)) == 12
        for vector, label in zip(part.vectors, part.labels, strict=True):
            row = np.flatnonzero((train.vectors == vector).all(1))[0]
            assert train.labels[row] == label
    assert not np.array_equal(draws[0].vectors, draws[1].vectors)


def test_more_shots_help_and_the_seed_decides():
    train, test = gaussians(400, 0), gaussians(400, 1)
    one, many = (few_shot.FewShot(shots=n).score(train, test) for n in (1, 20))
    assert many["accuracy"] > one["accuracy"] + 0.05
    assert many["accuracy_std"] < one["accuracy_std"]
    assert few_shot.FewShot(shots=1).score(train, test) == one
    assert few_shot.FewShot(shots=1, seed=1).score(train, test) != one


@pytest.mark.parametrize(
    "keywords, message",
    [
        (dict(shots=0), "shots=0 and repeats=10: give 1 or more"),
        (dict(repeats=0), "shots=10 and repeats=0: give 1 or more"),
        (dict(shots=99), r"'c' has \d+ train documents, but shots=99 .*: lower shots"),
    ],
)
def test_impossible_draws_are_refused_with_the_numbers(keywords, message):
    with pytest.raises(UserError, match=message):
        few_shot.FewShot(**keywords).score(gaussians(200, 0), gaussians(50, 1))


def test_the_probe_is_a_classifier_too():
    train, test = gaussians(200, 0), gaussians(100, 1)
    small = dict(fn="docjax.tasks.probe.Probe", width=16, epochs=30, held_out=0.0)
    task = build(dict(fn="docjax.tasks.few_shot.FewShot", repeats=2, classifier=small))
    found = task(LabelledVectors({"train": train, "test": test}), "test")
    probe = Probe(width=16, epochs=30, held_out=0.0)
    assert found == few_shot.FewShot(repeats=2, classifier=probe).score(train, test)
    assert found["accuracy"] > 0.6


def test_a_curve_has_the_scores_of_each_number_of_shots():
    train, test = gaussians(400, 0), gaussians(200, 1)
    data = LabelledVectors({"train": train, "test": test})
    curve = few_shot.ShotsCurve((1, 8), repeats=2, few=Linear(), full=Linear())
    curve.check(data, "test")
    found = curve(data, "test")
    for shots in (1, 8):
        scores = few_shot.FewShot(shots=shots, repeats=2).score(train, test)
        for metric, value in scores.items():
            assert found.pop(f"{shots}/{metric}") == value
    whole = classification.Linear().score(train, test)
    assert found == {f"all/{metric}": value for metric, value in whole.items()}


def test_numbers_of_shots_that_a_class_is_too_small_for_are_left_out(caplog):
    train, test = gaussians(60, 0), gaussians(50, 1)
    data = LabelledVectors({"train": train, "test": test})
    assert train.labels.count("c") == 5
    keywords = dict(repeats=2, few=Linear(), full=Linear())
    curve = few_shot.ShotsCurve((50, 1, 6, 5), **keywords)
    once.warn.cache_clear()
    for _ in range(2):  # every evaluation of a run
        curve.check(data, "test")
        found = curve(data, "test")
    assert found == few_shot.ShotsCurve((1, 5), **keywords)(data, "test")
    assert {name.split("/")[0] for name in found} == {"1", "5", "all"}
    [warning] = [record.getMessage() for record in caplog.records]
    assert "the class 'c' has 5 train documents" in warning
    assert "scores with 50, 6 documents of each class are left out" in warning


def test_a_class_with_too_few_documents_for_a_curve_is_named():
    data = LabelledVectors({"train": gaussians(60, 0), "test": gaussians(50, 1)})
    curve = few_shot.ShotsCurve((50, 6))
    for use in (curve.check, curve):
        with pytest.raises(
            NoLabels, match="class 'c' has 5 train documents, but shots=6"
        ):
            use(data, "test")
    with pytest.raises(UserError, match="shots=0 and repeats=10: give 1 or more"):
        few_shot.ShotsCurve((5, 0)).check(data, "test")
