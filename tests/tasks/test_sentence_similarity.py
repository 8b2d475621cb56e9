"""Similarities of sentences against a loop over all pairs."""

import itertools

import numpy as np
import pytest

from docjax.errors import UserError
from docjax.tasks.sentence_similarity import SentenceSimilarity, similarities
from docjax.types import Encoded


def cosine(a, b) -> float:
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def test_means_are_those_of_a_loop_over_the_pairs():
    generator = np.random.default_rng(0)
    counts = np.array([3, 1, 4])
    vectors = generator.normal(size=(8, 5)) + np.repeat(3 * np.eye(3, 5), counts, 0)
    parts = np.split(vectors, np.cumsum(counts)[:-1])
    inner = [
        np.mean([cosine(a, b) for a, b in itertools.combinations(part, 2)])
        for part in parts
        if len(part) > 1
    ]
    inter = [
        np.mean([cosine(a, b) for a in one for b in other])
        for one, other in itertools.combinations(parts, 2)
    ]
    found = similarities(vectors, counts, pairs=20_000, seed=0)
    assert found["inner"] == pytest.approx(np.mean(inner))
    assert found["inter"] == pytest.approx(np.mean(inter), abs=0.01)


def test_a_task_reads_each_sentence_once(given, document):
    class Data(given):
        def encode(self, documents, *, passages=False):
            for each in documents:
                text = each.sections[0].text
                self.encoded.append(text)
                vector = np.array([1.0, 0] if text.startswith("Cat") else [0, 2.0])
                yield Encoded(each.id, vector)

    documents = [
        document("a", "Cats sleep. Cats run.\n\n***"),
        document("b", "Dogs sleep."),
        document("c", "***"),
    ]
    data = Data(documents, np.ones((3, 1)))
    task = SentenceSimilarity(pairs=10)
    task.check(data, "test")
    assert task(data, "test") == {"inner": 1.0, "inter": 0.0}
    assert data.encoded == ["Cats sleep.", "Cats run.", "Dogs sleep."]


@pytest.mark.parametrize("counts", [[1, 1], [2]])
def test_too_few_sentences_are_refused(counts):
    with pytest.raises(UserError, match=f"of {len(counts)} documents have two"):
        similarities(np.ones((2, 3)), np.array(counts), 10, 0)


def test_mistakes_are_one_line(given, document):
    with pytest.raises(UserError, match="pairs=0 of sentences: give 1 or more"):
        SentenceSimilarity(pairs=0)
    data = given([document("a", "***"), document("b", "...")], np.ones((2, 1)))
    with pytest.raises(UserError, match="most=-1 documents: give 1 or more"):
        SentenceSimilarity(most=-1).check(data, "test")
    with pytest.raises(UserError, match="2 test documents have no sentence with a let"):
        SentenceSimilarity()(data, "test")
    data = given([document("a", "One.")], np.ones((1, 1)))
    data.by_id = {"a, sentence 0": np.array([np.nan])}
    with pytest.raises(
        UserError, match="vector of document 'a, sentence 0' is not fin"
    ):
        SentenceSimilarity()(data, "test")
