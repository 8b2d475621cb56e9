"""Words with their parts of speech, by NLTK's real tagger and WordNet."""

import pytest

from docjax.data.parts_of_speech import TOKEN, Nltk
from docjax.errors import UserError


@pytest.fixture(scope="module")
def tag(nltk_data, wordnet):
    return Nltk(nltk_data)


def test_words_are_cut_as_the_penn_treebank_does():
    text = "He isn't here: it's Ann’s 3.5-inch disk, e-mail x@y.org!"
    assert TOKEN.findall(text) == (
        "He is n't here : it 's Ann ’s 3.5-inch disk , e-mail x@y.org !".split()
    )


def test_kinds_and_lemmas_of_words(tag):
    text = "The worst stories were written by Dr. Smith. He ran, and she took cats!"
    kinds = {}
    for word in tag(text):
        assert word.end > word.start
        kinds[text[word.start : word.end]] = word.kind, word.lemma
    expected = dict(
        worst=("adjective", "worst"),
        stories=("noun", "story"),
        were=("other", "be"),
        written=("verb", "write"),
        Smith=("other", "smith"),
        ran=("verb", "run"),
        took=("verb", "take"),
        cats=("noun", "cat"),
    )
    assert expected.items() <= kinds.items()
    assert not {".", ",", "!"} & set(kinds)


def test_forms_of_have_and_do_are_verbs_only_by_themselves(tag):
    text = "She has a car. She has not seen it. We do the work. They do not know."
    kinds = [word.kind for word in tag(text) if word.lemma in ("have", "do")]
    assert kinds == ["verb", "other", "verb", "other"]


def test_names_and_auxiliary_verbs_count_on_demand(nltk_data, wordnet):
    text = "Smith has written what she can sell."
    kinds = {word.lemma: word.kind for word in Nltk(nltk_data, broad=True)(text)}
    assert kinds["smith"] == "noun"
    assert kinds["have"] == kinds["can"] == kinds["write"] == "verb"
    assert kinds["she"] == "other"


def test_places_count_from_the_start_of_the_whole_text(tag):
    text = "Cats sleep.\n\n  Cats sleep. Cats sleep."
    assert [text[word.start : word.end] for word in tag(text)] == ["Cats", "sleep"] * 3
    assert tag("") == []


def test_a_missing_lexicon_is_one_line(tmp_path):
    with pytest.raises(UserError, match="averaged_perceptron_tagger_eng is not in"):
        Nltk(str(tmp_path))
