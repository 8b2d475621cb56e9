"""Words as tokens: what a word is, which are learnt, and that others leave no trace."""

import re
import unicodedata
from collections import Counter

import numpy as np
import pytest

from docjax.data.tokenizer import load_tokenizer
from docjax.data.word_tokenizer import MARK, split, train_words
from docjax.errors import UserError

TRICKY = [
    "Don't you think it's, like, GREAT?!",
    "They've said (quietly) that we'd lose; you're sure he'll win...",
    "rock'n'roll 'quoted' ''twice'' `code` o'clock isn't'd",
    "can't've shouldn't've y'all'd've n't 's 'twas",
    "$3.50 or 1,000 -- e-mail: a.b@c.org, http://x.y/z?q=1!",
    "naïve façade 東京 🙂 x_y tab\tnew\nline",
    "((nested)) [square] {curly} wow!!! what??",
    "'s's 'dn't n'tn't 'll,'re(d)",
]
STOP_WORDS = "the\nis\nnot\na\n"


def clean_str(text: str) -> list[str]:
    """The words of TextGCN (https://github.com/yao8839836/text_gcn, utils.py)."""
    text = re.sub(r"[^A-Za-z0-9(),!?\'\`]", " ", text)
    for part in ("'s", "'ve", "n't", "'re", "'d", "'ll"):
        text = text.replace(part, f" {part}")
    for mark in ",!()?":
        text = text.replace(mark, f" {mark} ")
    return text.split()


def learnt(texts, **keywords):
    return train_words(texts, **dict(least_count=1, stop_words=False) | keywords)


def words(tokenizer, text: str) -> list[str]:
    """The words that a text becomes."""
    ids = tokenizer.encode([text])[0].tolist()
    return [tokenizer.backend.id_to_token(i).removeprefix("\u2581") for i in ids]


def random_texts(count: int) -> list[str]:
    generator = np.random.default_rng(0)
    pieces = [*"sventredlabSV'`!,()?. -\né_", "n't", "'s", "'ve", "'ll", "'d", "'re"]
    return ["".join(generator.choice(pieces, 30)) for _ in range(count)]


@pytest.fixture
def folder(tmp_path) -> str:
    """NLTK's data with four stop words."""
    (tmp_path / "corpora/stopwords").mkdir(parents=True)
    (tmp_path / "corpora/stopwords/english").write_text(STOP_WORDS)
    return str(tmp_path)


def test_the_words_of_letters_are_those_of_textgcn_in_small_letters():
    texts = [*TRICKY, *random_texts(500)]
    tokenizer = learnt(texts)
    for text in texts:
        assert words(tokenizer, text) == clean_str(text.lower())


def test_the_words_of_reviews_are_between_spaces_and_marks():
    text = "A \"so-so\" film:It's (too) long;don't go!<br /><br />3.5/10, naïve?"
    spaced = "a \" so-so \" film : it's ( too ) long don't go ! 3 . 5/10 , naïve ?"
    assert words(learnt([text], cleaning="reviews"), text) == spaced.split()


@pytest.mark.parametrize("cleaning", ["letters", "reviews"])
def test_a_line_break_of_html_is_a_space(cleaning):
    tokenizer = learnt(["good<br />film br"], cleaning=cleaning)
    assert words(tokenizer, "good<br />film<br /><br />br") == ["good", "film", "br"]


def test_frequent_words_come_first_and_equal_ones_by_the_alphabet():
    texts = random_texts(200)
    counts = Counter(word for text in texts for word in clean_str(text.lower()))
    expected = sorted(counts, key=lambda word: (-counts[word], word))
    tokenizer = learnt(texts)
    found = map(tokenizer.backend.id_to_token, range(1, tokenizer.vocabulary))
    assert [token[1:] for token in found] == expected


def test_ids_begin_with_one_and_no_text_has_zero():
    texts = [*TRICKY, "<pad> \x00 pad"]
    for cleaning in ("letters", "reviews"):
        tokenizer = learnt(texts, cleaning=cleaning)
        ids = np.concatenate(tokenizer.encode(texts))
        assert set(ids) == set(range(1, tokenizer.vocabulary))
        assert tokenizer.backend.id_to_token(0) == "<pad>"


@pytest.mark.parametrize("cleaning", ["letters", "reviews"])
def test_what_is_learnt_of_any_script_is_found_again(cleaning):
    others = ("Cn", "Co", "Cs", "Lo")  # no characters; letters without small ones
    texts = [
        f"A{one}Σ {one}a"
        for one in map(chr, range(0x20000))
        if unicodedata.category(one) not in others and one != MARK
    ]
    tokenizer = learnt(texts, cleaning=cleaning)
    ids = np.concatenate(tokenizer.encode(texts))
    assert set(ids) == set(range(1, tokenizer.vocabulary))
    assert len(ids) == sum(len(split(text, cleaning)) for text in texts)


def test_a_missing_list_of_stop_words_is_told_before_texts_are_read(tmp_path):
    def texts():
        pytest.fail("a text was read")
        yield

    with pytest.raises(UserError, match="stopwords is not in"):
        train_words(texts(), lexicons=str(tmp_path))


def test_a_text_has_no_special_tokens():
    tokenizer = learnt(["good film"])
    assert (tokenizer.prefix.tolist(), tokenizer.suffix.tolist()) == ([], [])


def test_rarer_words_are_not_learnt():
    tokenizer = learnt(["one two two Three three three"], least_count=2)
    assert words(tokenizer, "one two three") == ["two", "three"]


def test_unknown_words_are_dropped_even_of_one_letter():
    tokenizer = learnt(["abc a film b"])
    text = "xyz abc x ab c filma fil m a , b bc 🙂"
    assert words(tokenizer, text) == ["abc", "a", "b"]


def test_stop_words_are_dropped_but_those_that_are_kept(folder):
    texts = ["The film is not a good one. THE END"]
    tokenizer = learnt(texts, stop_words=True, lexicons=folder)
    assert words(tokenizer, texts[0]) == "film not good one end".split()
    tokenizer = learnt(texts, stop_words=True, keep=("is",), lexicons=folder)
    assert words(tokenizer, texts[0]) == "film is good one end".split()


def test_without_stop_words_no_lexicon_is_read(tmp_path):
    tokenizer = learnt(["the film"], stop_words=False, lexicons=str(tmp_path / "none"))
    assert words(tokenizer, "the film") == ["the", "film"]


def test_the_stop_words_are_those_of_nltk(nltk_data):
    text = "the film does not have a plot and was n't very good"
    tokenizer = learnt([text], stop_words=True, lexicons=nltk_data)
    assert words(tokenizer, text) == "film not plot n't good".split()


@pytest.mark.parametrize("cleaning", ["letters", "reviews"])
def test_a_saved_tokenizer_gives_equal_ids(cleaning, tmp_path):
    tokenizer = learnt(TRICKY, cleaning=cleaning)
    tokenizer.save(tmp_path / "tokenizer.json")
    read = load_tokenizer(tmp_path)
    texts = [*TRICKY, *random_texts(50)]
    assert read.sha256 == tokenizer.sha256
    for one, other in zip(read.encode(texts), tokenizer.encode(texts), strict=True):
        np.testing.assert_array_equal(one, other)


def test_transformers_read_the_same_ids(tmp_path):
    transformers = pytest.importorskip("transformers")
    tokenizer = learnt(TRICKY[1:])
    tokenizer.save(tmp_path / "tokenizer.json")
    oracle = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / "tokenizer.json"), pad_token="<pad>"
    )
    batch = oracle(TRICKY, padding=True)
    for ids, mask, expected in zip(
        batch["input_ids"],
        batch["attention_mask"],
        tokenizer.encode(TRICKY),
        strict=True,
    ):
        assert ids == expected.tolist() + [0] * mask.count(0)


@pytest.mark.parametrize("texts, count", [([], 0), (["rare"], 0), (["one one"], 1)])
def test_a_vocabulary_of_less_than_two_words_is_refused(texts, count):
    occur = len(set(" ".join(texts).split()))
    message = rf"has {count} words, of {occur} .* lower least_count \(2\)"
    with pytest.raises(UserError, match=message):
        learnt(texts, least_count=2)


def test_an_unknown_cleaning_is_refused_with_the_names_there_are():
    with pytest.raises(
        UserError, match="'lines' is not one of letters, alphabet, reviews"
    ):
        learnt(["good film"], cleaning="lines")
