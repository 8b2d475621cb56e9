import math
import sys

import pytest

from docjax.errors import UserError
from docjax.retrieval.bm25 import PRESETS, Settings, preset
from docjax.retrieval.bm25_files import search
from docjax.types import Document, Section

TEXTS = {
    "a": "cats sleep",
    "b": "a cat chases the other cat away",
    "c": "dogs bark",
    "d": "the and of",
}
DOCUMENTS = [Document(name, (Section("", text),)) for name, text in TEXTS.items()]


def test_scores_are_those_of_the_formula_on_stemmed_words():
    settings = Settings(k1=0.9, b=0.4)
    found = search(DOCUMENTS, {"q": "the cats", "r": "zebra"}, settings=settings)
    words = {"a": 2, "b": 4, "c": 2, "d": 0}  # without stop words; "other" is none
    lengths = {name: count for name, count in words.items()}
    assert set(found["q"]) == {"a", "b"} and found["r"] == {}
    ratio = found["q"]["b"] / found["q"]["a"]
    mean = 9 / 4  # b: cat, chase, other, cat, away
    lengths["b"] = 5
    part = lambda name, tf: tf / (tf + 0.9 * (1 - 0.4 + 0.4 * lengths[name] / mean))
    assert ratio == pytest.approx(part("b", 2) / part("a", 1), rel=1e-5)
    idf = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    assert found["q"]["a"] == pytest.approx(idf * part("a", 1), rel=1e-5)


def test_the_best_are_kept():
    assert list(search(DOCUMENTS, {"q": "cat dog"}, top=1)["q"]) == ["c"]


def test_documents_of_stop_words_alone_are_refused():
    documents = [Document("0", (Section("", "the and of it"),))]
    with pytest.raises(UserError, match="none of 1 documents has a word"):
        search(documents, {"q": "the"})


def test_a_missing_library_is_told_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(
        UserError, match=r"needs bm25s: pip install 'docjax\[retrieval\]"
    ):
        search(DOCUMENTS, {"q": "cat"})


def test_words_are_stemmed_and_stopped_as_asked():
    queries = {"q": "the cats"}
    plain = Settings(stemmer=None, stop_words=None)
    assert set(search(DOCUMENTS, queries, settings=plain)["q"]) == {"a", "b", "d"}
    stemmed = Settings(stemmer="porter", stop_words=None)
    assert set(search(DOCUMENTS, {"q": "cats"}, settings=stemmed)["q"]) == {"a", "b"}
    assert PRESETS["anserini"].k1 == 0.9
    faulty = PRESETS["wikir"]  # the query is "cat", the documents have "cats" and "cat"
    assert set(search(DOCUMENTS, {"q": "cats"}, settings=faulty)["q"]) == {"b"}
    with pytest.raises(UserError, match="'lucene' are none of docjax, anserini, rank_"):
        preset("lucene")


def test_presets_have_the_values_of_their_programs():
    assert PRESETS == {
        "docjax": Settings(1.5, 0.75, "english", "en", raw_documents=False),
        "anserini": Settings(0.9, 0.4, "porter", "en", raw_documents=False),
        "rank_bm25": Settings(1.5, 0.75, "porter", "en", raw_documents=False),
        "wikir": Settings(1.5, 0.75, "porter", "en", raw_documents=True),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"k1": -1.0}', "k1 -1.0, b 0.75: give a k1 from 0 on, and a b from 0 to 1"),
        ('{"b": 2.0}', "k1 1.5, b 2.0: give a k1 from 0 on"),
        ('{"b": NaN}', "settings.b nan is not a number: the default is 0.75"),
        ('{"k1": "2"}', "settings.k1 '2' is not a number: the default is 1.5"),
        ('{"k2": 1}', "Settings has no keyword 'k2'; it has k1, b, stemmer, stop_word"),
        ('{"stemmer": "klingon"}', "Stemming algorithm 'klingon' not found"),
        ('{"stop_words": "klingon"}', "klingon not recognized"),
        ("{", "Expecting property name"),
    ],
)
def test_settings_of_ones_own_are_json(text, message):
    own = '{"k1": 0.9, "stemmer": "german", "stop_words": null}'
    assert preset(own) == Settings(k1=0.9, stemmer="german", stop_words=None)
    listed = preset('{"stop_words": ["river", "of"]}')
    assert [len(ids) for ids in listed.words(["the river of gold", "of"]).ids] == [2, 0]
    with pytest.raises(UserError, match=message) as error:
        preset(text)
    assert "\n" not in str(error.value)
