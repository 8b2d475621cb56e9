"""Labels of training documents against vectors: when they speak, and when they cannot."""

import numpy as np
import pytest

from docjax.recipe.judgement import WHEN
from docjax.recipe.label_trial import by_labels


def clusters(labels):
    """Unit vectors, one direction for each label, and little noise."""
    noise = np.random.default_rng(0).normal(size=(len(labels), 64))
    vectors = np.eye(64)[np.asarray(labels) % 64] + 0.01 * noise
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def said(labels, vectors):
    both = {"start": vectors, "trained": vectors}
    return by_labels(np.asarray(labels), both, "trained", WHEN)


@pytest.mark.parametrize(
    "labels",
    [
        [i % 40 for i in range(240)],  # six documents each
        list(range(150)),
        [0] * 100 + list(range(1, 40)),  # one large class among different labels
        [-1] * 200,
    ],
    ids=["of six", "all different", "one large", "none"],
)
def test_labels_of_few_documents_say_nothing(labels):
    assert said(labels, clusters(labels)) == ("", {})


def test_small_classes_do_not_hide_that_large_ones_are_found():
    labels = [0] * 60 + [1] * 60 + [2 + i // 3 for i in range(120)]
    reason, metrics = said(labels, clusters(labels))
    assert reason == "" and metrics["judgement/start_knn"] == 1


def test_labels_of_seven_documents_speak():
    labels = np.arange(280) // 7
    both = {"start": clusters(labels), "trained": clusters(np.zeros(280, int))}
    reason, _ = by_labels(labels, both, "trained", WHEN)
    assert "right for 1.000 at the start" in reason


def test_random_labels_speak_against_training():
    labels = np.random.default_rng(1).integers(0, 4, 240)
    reason, _ = said(labels, clusters(np.zeros(240, int)))
    assert "cannot be read off the texts" in reason


def test_a_rare_label_that_the_texts_tell_does_not_speak_against_training():
    labels = [0] * 970 + [1] * 30
    vectors = clusters(labels)
    vectors[-12:] = vectors[:12]  # neighbours tell 18 of the rare label's 30 documents
    assert said(labels, vectors)[0] == ""


def test_a_rare_label_that_the_texts_do_not_tell_speaks_against_training():
    labels = [0] * 970 + [1] * 30
    reason, _ = said(labels, clusters(np.zeros(1000, int)))
    assert (
        "right for 0.500 of a label's documents at the start and 0.500 after" in reason
    )


def test_a_single_right_vote_proves_nothing():
    labels = [0] * 450 + [1] * 50
    vectors = clusters(np.zeros(500, int))
    near = np.flatnonzero(np.asarray(labels) == 1)[:7]  # one of them is told
    vectors[near[0]] = vectors[near[1:]].sum(0) / np.linalg.norm(
        vectors[near[1:]].sum(0)
    )
    assert "cannot be read off the texts" in said(labels, vectors)[0]


def test_worse_neighbours_speak_against_training():
    labels = np.arange(240) % 4
    noise = clusters(np.zeros(240, int))
    both = {"start": clusters(labels), "trained": clusters(labels) + 30 * noise}
    both["trained"][::2] = noise[::2]
    reason, _ = by_labels(labels, both, "trained", WHEN)
    assert "nearest neighbours' labels are right" in reason
