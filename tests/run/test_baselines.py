"""What a user has without docjax: TF-IDF as it should be, kept scores, few texts."""

import json

import numpy as np
import pytest
from sklearn.preprocessing import normalize

from docjax.errors import UserError
from docjax.run import baselines
from docjax.tasks.clustering import Clustering
from docjax.tasks.embeddings import LabelledVectors
from docjax.types import Embeddings

WORDS = "river garden oven letter star moon flute drum bread silver".split()


def texts(count):
    generator = np.random.default_rng(0)
    topics = [generator.choice(WORDS[i % 2 * 5 :][:5], 8) for i in range(count)]
    return [" ".join(words) for words in topics], [str(i % 2) for i in range(count)]


def scored(path, parts, plain=None) -> dict:
    """The scores of all baselines of k-means."""
    data = baselines.readers(parts, baselines.TfIdf(parts["train"][0]), plain or {})
    return baselines.baselines(path, {"clusters": Clustering()}, data)


def test_reduced_vectors_have_length_1():
    """Unscaled, the vectors of short texts are near 0 and k-means joins them."""
    train, _ = texts(40)
    vectors = baselines.TfIdf(train).reduced([train[0], "bread", "unknown words"])
    assert vectors.shape == (3, 9)  # one less than the words
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 0], atol=1e-6)


def test_both_forms_are_scored_once(tmp_path, monkeypatch):
    parts, path = {"train": texts(40), "test": texts(20)}, tmp_path / "baselines.json"
    found = scored(path, parts)
    assert set(found) == {"TF-IDF, all words", "TF-IDF, 256 dimensions"}
    assert all(scores["eval/clusters/purity"] == 1 for scores in found.values())
    assert json.loads(path.read_text()) == found
    monkeypatch.setattr(baselines, "TfidfVectorizer", None)
    assert scored(path, parts) == found


def test_an_encoder_stands_beside_words_at_equal_length(tmp_path):
    """As scikit-learn makes it: both normalized, then side by side."""
    parts = {"train": texts(40), "test": texts(20)}
    generator = np.random.default_rng(0)
    vectors = {
        part: generator.normal(size=(len(x), 3)) for part, (x, _) in parts.items()
    }
    encoder = LabelledVectors(
        {part: Embeddings(vectors[part], labels) for part, (_, labels) in parts.items()}
    )
    tfidf = baselines.TfIdf(parts["train"][0])
    data = baselines.readers(parts, tfidf, {"all words": lambda: encoder})
    found = data[baselines.BESIDE]().labelled("test")
    both = normalize(vectors["test"]), tfidf.reduced(parts["test"][0])
    np.testing.assert_allclose(found.vectors, np.hstack(both), rtol=1e-6)
    assert found.labels == parts["test"][1]
    assert baselines.BESIDE in scored(
        tmp_path / "b.json", parts, {"all words": lambda: encoder}
    )


def test_without_labels_of_both_parts_there_are_no_words_to_compare(tmp_path):
    parts = {"train": ([], []), "test": texts(20)}
    assert scored(tmp_path / "b.json", parts) == {}


def test_texts_without_a_common_word_are_one_line():
    with pytest.raises(UserError, match="TF-IDF: "):
        baselines.TfIdf(["one", "other"]).reduced(["one"])
