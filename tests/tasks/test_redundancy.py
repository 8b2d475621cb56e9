"""Redundancy of texts, counted by hand."""

import numpy as np
import pytest

from docjax.data.parts_of_speech import Word
from docjax.errors import UserError
from docjax.tasks.redundancy import Redundancy, redundancy


def tag(text: str) -> list[Word]:
    """Words with an n or a v before a colon are nouns and verbs."""
    kinds = {"n": "noun", "v": "verb"}
    words = [word.rpartition(":") for word in text.split()]
    return [Word(0, 1, kinds.get(kind, "other"), lemma) for kind, _, lemma in words]


def test_redundancy_is_nouns_and_verbs_by_different_lemmas():
    text = "n:cat v:see n:cat the n:dog a v:see"  # 5 by 3: cat, see, dog
    assert redundancy([text], tag) == {"1-50": 5 / 3, "all": 5 / 3}


def test_bins_are_means_over_their_texts():
    once = "n:a n:b"
    twice = "n:a n:a " + "x " * 48  # 50 words
    longer = "n:a n:a n:a " + "x " * 48  # 51 words
    longest = "n:a " * 4 + "x " * 297  # 301 words
    found = redundancy([once, twice, longer, longest, "x x"], tag)
    assert found == {"1-50": 1.5, "51-100": 3.0, "301-": 4.0, "all": 2.5}


def test_texts_without_nouns_and_verbs_are_refused():
    with pytest.raises(UserError, match="no text has a noun or a verb"):
        redundancy(["x y"], tag)


def test_a_task_reads_a_sample_of_its_part(given, document):
    texts = [f"n:a {'n:a ' * number}" for number in range(40)]
    documents = [document(str(n), text) for n, text in enumerate(texts)]
    data = given([*documents, document("x", "n:a", split="train")], np.ones((41, 1)))
    task = Redundancy(tag=tag, most=None)
    task.check(data, "test")
    assert task(data, "test")["all"] == np.mean(np.arange(40) + 1)
    assert task(data, "train") == {"1-50": 1, "all": 1}
    few = [Redundancy(tag=tag, most=5, seed=s)(data, "test") for s in (0, 0, 1)]
    assert few[0] == few[1] != few[2]
    assert data.encoded == []
    with pytest.raises(UserError, match="no validation document to analyse"):
        task.check(data, "validation")


def test_a_missing_lexicon_is_told_before_anything_is_read(given, tmp_path):
    with pytest.raises(UserError, match="averaged_perceptron_tagger_eng is not in"):
        Redundancy(lexicons=str(tmp_path)).check(given([], []), "test")


def test_english_is_tagged_by_nltk(given, document, nltk_data, wordnet):
    text = "The dogs took a dog. The dog has taken dogs."  # dog x 4, take x 2
    data = given([document("a", text)], np.ones((1, 1)))
    assert Redundancy(lexicons=nltk_data)(data, "test") == {"1-50": 3.0, "all": 3.0}
    broad = Redundancy(lexicons=nltk_data, broad=True)  # "has" too: 7 by 3
    assert broad(data, "test")["all"] == 7 / 3
