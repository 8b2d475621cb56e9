"""What a user has without docjax: TF-IDF as it should be, kept scores, few texts."""

import json

import numpy as np
import pytest

from docjax.errors import UserError
from docjax.run import baselines
from docjax.tasks.clustering import Clustering

WORDS = "river garden oven letter star moon flute drum bread silver".split()


def texts(count):
    generator = np.random.default_rng(0)
    topics = [generator.choice(WORDS[i % 2 * 5 :][:5], 8) for i in range(count)]
    return [" ".join(words) for words in topics], [str(i % 2) for i in range(count)]


def test_reduced_vectors_have_length_1():
    """Unscaled, the vectors of short texts are near 0 and k-means joins them."""
    train, _ = texts(40)
    vectors = baselines.tfidf_vectors(
        train, [train[0], "bread", "unknown words"], baselines.WIDTH
    )
    assert vectors.shape == (3, 9)  # one less than the words
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 0], atol=1e-6)


def test_both_forms_are_scored_once(tmp_path, monkeypatch):
    parts, path = {"train": texts(40), "test": texts(20)}, tmp_path / "baselines.json"
    found = baselines.baselines(path, {"clusters": Clustering()}, parts, {})
    assert set(found) == {"TF-IDF, all words", "TF-IDF, 256 dimensions"}
    assert all(scores["eval/clusters/purity"] == 1 for scores in found.values())
    assert json.loads(path.read_text()) == found
    monkeypatch.setattr(baselines, "tfidf_vectors", None)
    assert baselines.baselines(path, {"clusters": Clustering()}, parts, {}) == found


def test_without_labels_of_both_parts_there_are_no_words_to_compare(tmp_path):
    parts = {"train": ([], []), "test": texts(20)}
    found = baselines.baselines(tmp_path / "b.json", {"c": Clustering()}, parts, {})
    assert found == {}


def test_texts_without_a_common_word_are_one_line():
    with pytest.raises(UserError, match="TF-IDF: "):
        baselines.tfidf_vectors(["one", "other"], ["one"], baselines.WIDTH)
