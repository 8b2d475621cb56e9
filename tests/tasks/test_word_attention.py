"""Attention by part of speech: from tokens to words, from words to kinds."""

import numpy as np
import pytest

import docjax
from docjax.data.parts_of_speech import Word
from docjax.errors import UserError
from docjax.model.task_data import FileData
from docjax.tasks.word_attention import WordAttention, of_words
from docjax.types import TokenAttention


def test_the_weights_of_the_pieces_of_a_word_are_summed_or_averaged():
    # "playing cats": play, ing and, as byte-level BPE has it, " cats".
    attention = TokenAttention(
        np.array([0.1, 0.2, 0.4], np.float32), np.array([[0, 4], [4, 7], [7, 12]])
    )
    words = [Word(0, 7, "verb", "play"), Word(8, 12, "noun", "cat")]
    assert of_words(words, attention) == pytest.approx([0.3, 0.4])
    assert of_words(words, attention, "mean") == pytest.approx([0.15, 0.4])
    for of_word in ("sum", "mean"):
        assert of_words([Word(20, 22, "noun", "x")], attention, of_word) == [0]


def test_kinds_are_means_over_the_words_of_all_documents(given, document):
    def tag(text: str) -> list[Word]:
        kinds = {"cat": "noun", "kitten": "noun", "runs": "verb"}
        starts = [text.index(word) for word in text.split()]
        return [
            Word(start, start + len(word), kinds.get(word, "other"), word)
            for start, word in zip(starts, text.split(), strict=True)
        ]

    texts = ("cat runs", "kitten", "a")
    documents = [document(text, text) for text in texts]
    data = given(documents, np.ones((3, 1)))
    task = WordAttention(tag=tag)
    task.check(data, "test")
    expected = {"noun": (0.03 + 0.06) / 2, "verb": 0.04, "other": 0.01}
    assert task(data, "test") == pytest.approx(expected)


def test_only_what_fits_a_segment_is_read(tiny, nltk_data, wordnet):
    model = docjax.load(tiny)
    long = FileData(model, lambda: iter(())).token_attention()("cats " * 500)
    room = model.limits.segment_tokens - 2
    assert len(long.weights) == len(long.spans) == room
    assert 0 < long.weights.sum() < 1


def test_a_model_without_a_transformer_is_refused_before_anything_is_read(
    given, document, nltk_data
):
    class Data(given):
        def token_attention(self):
            raise UserError("WordAverage has no attention of a first token")

    data = Data([document("a")], np.ones((1, 1)))
    with pytest.raises(UserError, match="WordAverage has no attention"):
        WordAttention(lexicons=nltk_data).check(data, "test")
