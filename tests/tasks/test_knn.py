"""Nearest neighbours against scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import accuracy_score
from sklearn.neighbors import NearestNeighbors

from docjax.errors import UserError
from docjax.tasks import classification
from docjax.tasks.embeddings import LabelledVectors
from docjax.tasks.knn import KNearest
from docjax.types import Embeddings


def cloud(count: int, seed: int) -> Embeddings:
    """Three classes that overlap; lengths of vectors differ a lot."""
    generator = np.random.default_rng(seed)
    classes = generator.integers(3, size=count)
    vectors = 2 * np.eye(3, 6)[classes] + generator.normal(size=(count, 6))
    vectors *= generator.uniform(0.1, 5, (count, 1))
    return Embeddings(vectors.astype(np.float32), ["abc"[i] for i in classes])


@pytest.mark.parametrize("neighbours", [1, 4, 5, 10])
def test_scores_are_those_of_a_vote_of_scikit_learns_neighbours(neighbours):
    """Exactly: a wrong neighbour, count or tie of a single document would show."""
    train, test = cloud(300, 0), cloud(400, 1)
    search = NearestNeighbors(n_neighbors=neighbours, metric="cosine")
    rows = search.fit(train.vectors).kneighbors(test.vectors, return_distance=False)
    labels = [[train.labels[row] for row in nearest] for nearest in rows]
    # `max` takes the first of equals, and the nearest comes first.
    expected = [max(votes, key=votes.count) for votes in labels]
    ties = [max(reversed(votes), key=votes.count) for votes in labels]
    assert neighbours == 1 or ties != expected  # the test can tell
    score = classification.score(test.labels, expected)
    assert KNearest(neighbours=neighbours).score(train, test) == score
    assert score["accuracy"] == accuracy_score(test.labels, expected)


def test_the_nearest_decides_between_equally_frequent_labels():
    vectors = np.array([[1, 0], [0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], np.float32)
    train = Embeddings(vectors, list("baab"))
    test = Embeddings(vectors[:1], ["b"])
    for neighbours, accuracy in ((1, 1), (2, 1), (3, 0), (4, 1), (99, 1)):
        assert (
            KNearest(neighbours=neighbours).score(train, test)["accuracy"] == accuracy
        )


def test_a_task_compares_as_the_model_does():
    vectors = np.array([[1, 0], [9, 9]], np.float32)
    train = Embeddings(vectors, ["a", "b"])
    test = Embeddings(np.array([[1, 0.1]], np.float32), ["a"])
    for similarity, accuracy in (("cosine", 1), ("dot", 0)):
        data = LabelledVectors({"train": train, "test": test}, similarity)
        assert KNearest(1)(data, "test")["accuracy"] == accuracy


def test_impossible_values_are_refused():
    train = cloud(10, 0)
    with pytest.raises(UserError, match="neighbours=0"):
        KNearest(0)
    sparse = train._replace(vectors=scipy.sparse.csr_matrix(train.vectors))
    with pytest.raises(UserError, match="6 sparse numbers"):
        KNearest().score(sparse, sparse)
