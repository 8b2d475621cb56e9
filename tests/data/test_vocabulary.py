"""The words behind ids: which tokens are whole words, whatever the tokenizer."""

import re

import numpy as np
import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from docjax.data.corpus import Corpus
from docjax.data.tokenizer import Tokenizer, load_tokenizer, train_tokenizer
from docjax.data.units import Whole
from docjax.data.vocabulary import vocabulary
from docjax.data.word_tokenizer import train_words
from docjax.types import Document, Section

TEXTS = [
    "The unhappiest films, embeddings and naïve façades (of Übermut) don't end.",
    "The word: films\nwords; embedding, word2vec-like x1 unwordly 🙂!",
    'Ärger is "word" and word.Ärger wordÄrger',
]
LETTER = re.compile(r"\w")


def word_level() -> Tokenizer:
    return train_words(TEXTS, least_count=1, stop_words=False)


def byte_level() -> Tokenizer:
    return train_tokenizer([*TEXTS, "the film the word of Ärger the end"] * 20, 330)


def unigram() -> Tokenizer:
    """As XLM-R and T5 have it: pieces with a mark begin words."""
    characters = sorted({"\u2581", *"".join(TEXTS)} - {" ", "\n"})
    marked = ["\u2581film", "\u2581word", "\u2581the", "\u2581end", "\u2581Ärger"]
    scores = [("<unk>", 0.0)] + [(one, -5.0) for one in marked]
    scores += [(one, -10.0) for one in characters]
    backend = tokenizers.Tokenizer(models.Unigram(scores, unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.add_special_tokens(["<unk>"])
    return Tokenizer(backend)


def corpus_of(folder, tokenizer, texts=TEXTS) -> Corpus:
    documents = [Document(f"d{i}", (Section("", x),)) for i, x in enumerate(texts)]
    return Corpus.build(folder / "corpus", documents, Whole(), tokenizer, 64, "one")


@pytest.fixture(scope="module")
def wordpiece(minilm) -> Tokenizer:
    return load_tokenizer(minilm)


def make(request, kind) -> Tokenizer:
    return kind() if callable(kind) else request.getfixturevalue(kind)


@pytest.fixture(params=[word_level, byte_level, unigram, "wordpiece"])
def tokenizer(request) -> Tokenizer:
    return make(request, request.param)


def whole_words(tokenizer, tmp_path, text: str) -> list[str]:
    """Those words of a text that are one token."""
    words = vocabulary(tokenizer, corpus_of(tmp_path, tokenizer))
    ids = tokenizer.encode([text])[0]
    return [words.words[i] for i in ids[words.whole(ids)]]


def test_counts_are_those_of_the_tokens(tokenizer, tmp_path):
    corpus = corpus_of(tmp_path, tokenizer, [*TEXTS, ""])
    expected = np.zeros(tokenizer.vocabulary, int)
    for segments in corpus:
        np.add.at(expected, segments.tokens, 1)
    np.testing.assert_array_equal(vocabulary(tokenizer, corpus).counts, expected)


def test_ids_lead_to_their_words_and_back(tokenizer, tmp_path):
    words = vocabulary(tokenizer, corpus_of(tmp_path, tokenizer))
    assert len(words.words) == len(words.continues) == tokenizer.vocabulary
    assert {words.words[i] for i in words.ids.values()} == set(words.ids)
    for word in ("word", "end"):
        ids = tokenizer.encode([word])[0]
        assert ids.tolist() == [words.ids[word]]


@pytest.mark.parametrize("kind", [byte_level, unigram, "wordpiece"])
def test_special_tokens_are_no_words_and_go_on_none(kind, request, tmp_path):
    tokenizer = make(request, kind)
    words = vocabulary(tokenizer, corpus_of(tmp_path, tokenizer))
    special = list(tokenizer.backend.get_added_tokens_decoder())
    assert special and {*tokenizer.prefix, *tokenizer.suffix} <= set(special)
    assert all(words.words[i] is None for i in special)
    assert not words.continues[special].any()


def test_all_words_of_a_corpus_are_words_and_the_padding_is_none(tmp_path):
    tokenizer = word_level()
    words = vocabulary(tokenizer, corpus_of(tmp_path, tokenizer))
    learnt = map(tokenizer.backend.id_to_token, range(1, tokenizer.vocabulary))
    assert words.words == [None, *(token.removeprefix("\u2581") for token in learnt)]
    assert all(words.whole(ids).all() for ids in tokenizer.encode(TEXTS))


def test_the_words_of_wordpiece_are_all_tokens_but_its_pieces(
    wordpiece, minilm, tmp_path
):
    words = vocabulary(wordpiece, corpus_of(tmp_path, wordpiece))
    tokens = (minilm / "vocab.txt").read_text("utf-8").splitlines()
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    for i, token in enumerate(tokens):
        assert words.continues[i] == (token[:2] == "##")
        word = token[:2] != "##" and token not in special
        assert words.words[i] == (token if word else None)


def test_the_words_of_byte_level_tokens_are_text_not_bytes(tmp_path):
    tokenizer = byte_level()
    words = vocabulary(tokenizer, corpus_of(tmp_path, tokenizer))
    assert "\u0120\u00c3\u0126rger" in tokenizer.backend.get_vocab()
    assert "Ärger" in words.ids
    for i in words.ids.values():
        text = tokenizer.backend.decode([i])
        assert text == " " + words.words[i]


@pytest.mark.parametrize("kind", [byte_level, unigram, "wordpiece"])
def test_a_token_is_a_whole_word_if_no_letters_are_left_around_it(
    kind, request, tmp_path
):
    marked = kind != "wordpiece"  # then a word is what comes after a space
    tokenizer = make(request, kind)
    words, seen = vocabulary(tokenizer, corpus_of(tmp_path, tokenizer)), []
    for text in TEXTS:
        encoding = tokenizer.backend.encode(text, add_special_tokens=False)
        found = words.whole(np.array(encoding.ids))
        for (start, end), one in zip(encoding.offsets, found, strict=True):
            piece = text[start:end].strip()
            before, after = text[: end - len(piece)][-1:], text[end:][:1]
            if piece.isalpha():
                apart = before in ("", " ") if marked else not LETTER.match(before)
                assert one == (apart and not LETTER.match(after)), (piece, text)
                seen.append(one)
    assert set(seen) == {False, True}


def test_a_word_before_a_mark_is_whole(tokenizer, tmp_path):
    text = "the word, the end. the word; the word\n the word's"
    words = whole_words(tokenizer, tmp_path, text)
    found = " ".join(word for word in words if word in ("word", "end"))
    assert found == "word end word word word"


def test_a_word_that_goes_on_in_pieces_is_not_whole(wordpiece, tmp_path):
    text = "em embeddings un unhappiest word words word2vec"
    found = whole_words(wordpiece, tmp_path, text)
    assert found == ["em", "un", "word", "words"]


def test_the_last_token_is_whole_and_no_tokens_have_no_words(wordpiece, tmp_path):
    words = vocabulary(wordpiece, corpus_of(tmp_path, wordpiece))
    ids = wordpiece.encode(["em"])[0]
    assert words.whole(ids).tolist() == [True]
    assert words.whole(ids[:0]).tolist() == []
