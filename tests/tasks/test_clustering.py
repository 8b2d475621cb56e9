"""k-means clustering against hand-computed scores."""

import logging
import math

import numpy as np
import pytest

from docjax.errors import UserError
from docjax.parts.named import build
from docjax.tasks.clustering import Clustering, purity
from docjax.tasks.embeddings import LabelledVectors
from docjax.types import Embeddings

METRICS = {"nmi", "nmi_geometric", "nmi_min", "nmi_max", "purity"}


def blobs(labels: str, seed: int = 0, noise: float = 0.01) -> Embeddings:
    """A vector near a corner of its own for each letter."""
    names = sorted(set(labels))
    corners = np.eye(8)[[names.index(label) for label in labels]]
    jitter = np.random.default_rng(seed).normal(scale=noise, size=corners.shape)
    return Embeddings((10 * corners + jitter).astype(np.float32), list(labels))


def test_separate_classes_score_one():
    scores = Clustering().score(blobs("aabbcc"), blobs("abcabc", seed=1))
    assert scores == dict.fromkeys(METRICS, pytest.approx(1))


def test_the_scores_of_a_known_clustering_are_those_computed_by_hand():
    train = blobs("aaabbb")
    test = Embeddings(blobs("aaabbb", seed=1).vectors, list("xxyyyz"))
    scores = Clustering().score(train, test)  # clusters {x x y} and {y y z}
    assert scores["purity"] == pytest.approx(4 / 6)
    entropy_clusters = math.log(2)
    entropy_labels = -sum(p * math.log(p) for p in (2 / 6, 3 / 6, 1 / 6))
    joint = [2 / 6, 1 / 6, 2 / 6, 1 / 6]
    entropy_joint = -sum(p * math.log(p) for p in joint)
    information = entropy_clusters + entropy_labels - entropy_joint
    expected = information / ((entropy_clusters + entropy_labels) / 2)
    assert scores["nmi"] == pytest.approx(expected)
    low, high = sorted([entropy_clusters, entropy_labels])
    assert scores["nmi_geometric"] == pytest.approx(information / math.sqrt(low * high))
    assert scores["nmi_min"] == pytest.approx(information / low)
    assert scores["nmi_max"] == pytest.approx(information / high)


def test_purity_does_not_depend_on_the_numbers_of_the_clusters():
    labels, assigned = list("aabbccab"), np.array([0, 0, 1, 1, 2, 0, 0, 2])
    expected = sum(
        max(sum(x == y for x in np.array(labels)[assigned == k]) for y in "abc")
        for k in range(3)
    ) / len(labels)
    assert purity(labels, assigned) == pytest.approx(expected)
    assert purity(labels, np.array([7, 3, 5])[assigned]) == pytest.approx(expected)


def test_train_labels_only_set_the_number_of_clusters():
    train, test = blobs("aabbcc", noise=3), blobs("abcabc", seed=1, noise=3)
    shuffled = train._replace(labels=list("cabcba"))
    assert Clustering().score(train, test) == Clustering().score(shuffled, test)
    assert Clustering().score(train, test) == Clustering(clusters=3).score(
        train._replace(labels=["a"] * 6), test
    )


def test_the_same_seed_gives_the_same_scores():
    train, test = blobs("abcd" * 50, noise=8), blobs("abcd" * 50, seed=1, noise=8)
    first = Clustering(seed=3).score(train, test)
    assert first == Clustering(seed=3).score(train, test)
    several = {
        Clustering(restarts=1, seed=s).score(train, test)["nmi"] for s in range(5)
    }
    assert len(several) > 1  # so the seed was used


def test_equal_vectors_score_zero_and_say_so(caplog):
    same = Embeddings(np.ones((6, 4), np.float32), list("aabbcc"))
    with caplog.at_level(logging.WARNING):
        scores = Clustering().score(same, same)
    assert scores == dict.fromkeys(METRICS, 0) | {"purity": pytest.approx(1 / 3)}
    assert "3 clusters wanted, 1 found" in caplog.text


def test_a_config_names_it():
    task = build(dict(fn="docjax.tasks.clustering.Clustering", restarts=2, seed=1))
    data = LabelledVectors({"train": blobs("aabb"), "validation": blobs("ab")})
    assert set(task(data, "validation")) == METRICS


def test_a_user_is_told_what_is_wrong():
    good = blobs("aabb")
    broken = good._replace(vectors=good.vectors.copy())
    broken.vectors[2, 0] = np.nan
    narrow = good._replace(vectors=good.vectors[:, :3])
    empty = Embeddings(np.zeros((0, 8), np.float32), [])
    cases = [
        (dict(train=blobs("aa"), test=good), "all 2 train documents .* 'a'"),
        (dict(train=good, test=blobs("bbb")), "all 3 test documents"),
        (dict(train=good, test=good, clusters=5), "4 train .* 5 clusters"),
        (dict(train=good, test=good, clusters=0), "clusters=0 .* at least 1"),
        (dict(train=good, test=good, restarts=0), "restarts=0 .* at least 1"),
        (dict(train=broken, test=good), "1 of 4 train vectors .*first: row 2"),
        (dict(train=good, test=narrow), "width 8, test vectors 3"),
        (dict(train=good, test=empty), "no labelled test document"),
        (dict(train=good, test=good._replace(labels=["a"])), "4 test vectors .* 1 lab"),
    ]
    for arguments, message in cases:
        parts = arguments.pop("train"), arguments.pop("test")
        with pytest.raises(UserError, match=message) as error:
            Clustering(**arguments).score(*parts)
        assert "\n" not in str(error.value)


def test_normalized_documents_are_near_by_their_cosine():
    """Two directions, three lengths: lengths part the documents as they are."""
    generator = np.random.default_rng(0)
    directions = np.repeat(np.eye(2), 30, axis=0) + 0.05
    lengths = generator.choice([0.1, 1.0, 10.0], (60, 1))
    vectors = (directions * lengths).astype(np.float32)
    labels = ["a"] * 30 + ["b"] * 30
    given = (
        Embeddings(vectors[::2], labels[::2]),
        Embeddings(vectors[1::2], labels[1::2]),
    )
    for together in (False, True):
        assert Clustering(all_documents=together).score(*given)["nmi"] < 0.9
        found = Clustering(all_documents=together, normalize=True).score(*given)
        assert found == dict.fromkeys(METRICS, 1.0)


def test_classes_of_both_parts_count_where_both_are_clustered():
    train, test = blobs("aabb"), blobs("cc", seed=2)
    found = Clustering(all_documents=True).score(train, test)
    assert set(found) == METRICS
    with pytest.raises(UserError, match="all 4 train and test documents"):
        Clustering(all_documents=True).score(blobs("aa"), blobs("aa"))


def test_all_documents_are_clustered_together_if_asked_for():
    """Test documents lie far out, in the direction of the train documents' class."""
    train, corners = blobs("aabb"), blobs("aabb", seed=1)
    aside = np.roll(corners.vectors, 2, axis=1)
    test = Embeddings(5 * corners.vectors + aside, corners.labels)
    alone = Clustering().score(train, test)
    assert alone["nmi"] == pytest.approx(1)  # each joins its own
    # Together, one class far out is a cluster, and all others are near the middle.
    assert Clustering(all_documents=True).score(train, test)["purity"] == 6 / 8
