"""Lexicons: what NLTK and files of paraphrases know, and what is said if they do not."""

import gzip
import itertools
import lzma
import re
import shutil

import nltk
import pytest

from docjax.data import lexicons
from docjax.errors import UserError

PAIRS = "Film\tmovie\r\nfilm\tflick\r\nmotion picture\tfilm\r\nbig\tlarge\r\n"
FOUND = {
    "film": {"movie", "flick"},
    "movie": {"film"},
    "flick": {"film"},
    "big": {"large"},
    "large": {"big"},
}
PPDB = """\
[NN] ||| film ||| movie ||| PPDB2.0Score=4.2 AGigaSim=0.9 ||| 0-0 ||| Equivalence
[NN] ||| film ||| flick ||| PPDB2.0Score=3.9 AGigaSim=0.8 ||| 0-0 ||| Equivalence
[NP] ||| motion picture ||| film ||| PPDB2.0Score=3.1 ||| 0-0 1-0 ||| Equivalence
[JJ] ||| big ||| large ||| PPDB2.0Score=5.0 AGigaSim=0.7 ||| 0-0 ||| Equivalence
"""


@pytest.fixture
def elsewhere(monkeypatch):
    """NLTK finds nothing by itself, and forgets what a test lets it find."""
    lexicons._wordnet.cache_clear()
    monkeypatch.setattr(nltk.data, "path", [])
    yield
    lexicons._wordnet.cache_clear()


def write_stop_words(folder):
    """The least folder with the layout of NLTK's data."""
    (folder / "corpora/stopwords").mkdir(parents=True)
    (folder / "corpora/stopwords/english").write_text("the\nà\nisn't\n", "utf-8")


def test_stop_words_are_the_lines_of_a_file(tmp_path):
    write_stop_words(tmp_path)
    assert lexicons.stop_words(str(tmp_path)) == {"the", "à", "isn't"}


def test_without_a_folder_nltk_looks_where_it_always_does(elsewhere, tmp_path):
    write_stop_words(tmp_path)
    with pytest.raises(UserError, match="stopwords is not in"):
        lexicons.stop_words()
    nltk.data.path.append(str(tmp_path))
    assert lexicons.stop_words() == {"the", "à", "isn't"}


def test_a_folder_is_searched_alone(elsewhere, tmp_path):
    write_stop_words(tmp_path)
    nltk.data.path.append(str(tmp_path))
    with pytest.raises(UserError, match="stopwords is not in .*other"):
        lexicons.stop_words(str(tmp_path / "other"))


@pytest.mark.parametrize(
    "read, name, holds",
    [
        (lexicons.stop_words, "stopwords", "corpora/stopwords/english"),
        (lexicons.WordNet, "wordnet", "corpora/wordnet"),
        (lexicons.Tagger, "averaged_perceptron_tagger_eng", "taggers/averaged_"),
    ],
)
def test_a_missing_lexicon_gives_one_line_that_says_how_to_get_it(
    elsewhere, tmp_path, read, name, holds
):
    for folder in (None, str(tmp_path)):
        with pytest.raises(UserError) as error:
            read(folder)
        assert "\n" not in str(error.value)
        assert f"`python -m nltk.downloader {name}`" in str(error.value)
        assert f"the folder that holds {holds}" in str(error.value)
    assert f"is not in {tmp_path}, or damaged:" in str(error.value)


@pytest.mark.parametrize(
    "read, name, damaged",
    [
        (lexicons.WordNet, "corpora/wordnet/none", ""),  # an empty folder
        (lexicons.WordNet, "corpora/wordnet/lexnames", "nonsense"),
        (lexicons.stop_words, "corpora/stopwords/english", b"\xff"),
        (
            lexicons.Tagger,
            f"taggers/{lexicons.TAGGER}/{lexicons.TAGGER}.weights.json",
            '{"bias"',
        ),
    ],
)
def test_a_damaged_lexicon_is_told_as_a_missing_one(
    elsewhere, tmp_path, read, name, damaged
):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    with pytest.raises(UserError, match="or damaged: get it with"):
        read(str(tmp_path))


def test_the_stop_words_of_nltk_are_179(nltk_data):
    found = lexicons.stop_words(nltk_data)
    assert len(found) == 179
    assert {"the", "not", "don't", "ourselves"} <= found


def test_synonyms_are_the_single_words_of_all_synsets(wordnet):
    machines = {"car", "auto", "automobile", "machine", "motorcar"}  # a vehicle
    rooms = {"railcar", "gondola"}  # of a train, of an airship
    assert wordnet.synonyms("car") == machines | rooms
    assert wordnet.synonyms("docjax") == set()


def test_an_inflected_word_has_the_synonyms_of_its_base_form(wordnet):
    assert wordnet.synonyms("cars") == wordnet.synonyms("car")
    assert "purchase" in wordnet.synonyms("bought")


@pytest.mark.parametrize(
    "word, antonyms",
    [
        ("good", {"bad", "evil"}),
        ("unhappy", {"happy"}),
        ("increase", {"decrease"}),
        ("opened", {"close"}),  # of its base form
        ("man", set()),  # as a noun it has one
        ("quickly", set()),  # as an adverb
        ("docjax", set()),
    ],
)
def test_antonyms_are_those_of_an_adjective_or_a_verb(wordnet, word, antonyms):
    assert wordnet.antonyms(word) == antonyms


def test_a_synonym_of_a_word_does_not_lend_it_its_antonyms(wordnet):
    assert "large" in wordnet.synonyms("big")
    assert "small" in wordnet.antonyms("large")
    assert wordnet.antonyms("big") == {"little"}


def test_words_are_in_small_letters_and_single(wordnet):
    found = wordnet.synonyms("march") | wordnet.synonyms("film")
    assert "mar" in found  # Mar, March
    assert all(word.islower() and "_" not in word for word in found)


def test_a_word_is_tagged_in_its_context(nltk_data, monkeypatch):
    monkeypatch.chdir(nltk_data)
    tagger = lexicons.Tagger(".")  # a folder need not be named from the root
    text = "they love this very good film for the love of it"
    found = tagger.is_adjective_or_verb(text.split())
    chosen = [word for word, one in zip(text.split(), found, strict=True) if one]
    assert chosen == ["love", "good"]  # the second love is a noun
    assert tagger.is_adjective_or_verb([]) == []


def zipped(folder, name):
    """Packs `folder/name` as NLTK's downloader leaves it."""
    part, _, inner = name.partition("/")
    shutil.make_archive(folder / name, "zip", folder / part, inner)
    shutil.rmtree(folder / name)


def test_stop_words_are_read_from_the_zip_that_nltk_downloads(tmp_path):
    write_stop_words(tmp_path)
    zipped(tmp_path, "corpora/stopwords")
    assert lexicons.stop_words(str(tmp_path)) == {"the", "à", "isn't"}


def test_wordnet_is_read_from_the_zip_that_nltk_downloads(monkeypatch, tmp_path):
    reader = "nltk.corpus.reader.wordnet.WordNetCorpusReader"
    monkeypatch.setattr(reader, lambda path, _: path)
    (tmp_path / "corpora/wordnet").mkdir(parents=True)
    (tmp_path / "corpora/wordnet/index.noun").write_text("car n")
    zipped(tmp_path, "corpora/wordnet")
    path = lexicons.WordNet(str(tmp_path))._reader
    with path.join("index.noun").open("utf-8") as file:
        assert file.read() == "car n"


def test_the_tagger_is_read_from_the_zip_that_nltk_downloads(nltk_data, tmp_path):
    name = "taggers/averaged_perceptron_tagger_eng"
    shutil.copytree(f"{nltk_data}/{name}", tmp_path / name)
    zipped(tmp_path, name)
    tagger = lexicons.Tagger(str(tmp_path))
    assert tagger.is_adjective_or_verb(["a", "good", "film"]) == [False, True, False]


@pytest.mark.parametrize("text", [PAIRS, PPDB])
def test_paraphrases_go_in_both_directions_and_phrases_are_left_out(tmp_path, text):
    (tmp_path / "pairs.txt").write_text(text)
    assert lexicons.pairs(str(tmp_path / "pairs.txt")) == FOUND


def test_control_characters_are_no_words_and_no_mistake(tmp_path):
    (tmp_path / "pairs.tsv").write_text("\x16\t\x1d\nbig\tlarge\n")  # as PPDB has it
    found = lexicons.pairs(str(tmp_path / "pairs.tsv"))
    assert found == {"big": {"large"}, "large": {"big"}}


@pytest.mark.parametrize("suffix, opener", [(".gz", gzip.open), (".xz", lzma.open)])
def test_paraphrases_may_be_compressed(tmp_path, suffix, opener):
    path = tmp_path / f"pairs{suffix}"
    with opener(path, "wt") as file:
        file.write(PAIRS)
    assert lexicons.pairs(str(path)) == FOUND


@pytest.mark.parametrize(
    "line", ["alone", "one\ttwo\tthree", "one\t ", "", "[X] ||| film"]
)
def test_a_line_that_is_no_pair_is_named_with_its_number(tmp_path, line):
    path = tmp_path / "pairs.tsv"
    path.write_text(f"film\tmovie\n{line}\nbig\tlarge\n")
    with pytest.raises(UserError, match="pairs.tsv, line 2: not a pair") as error:
        lexicons.pairs(str(path))
    assert repr(line.strip()) in str(error.value)


def test_a_missing_file_of_paraphrases_is_named(tmp_path):
    with pytest.raises(UserError, match="none.tsv: cannot be read"):
        lexicons.pairs(str(tmp_path / "none.tsv"))


@pytest.mark.parametrize(
    "name, content",
    [
        ("pairs.tsv", b"film\tmovie\n\xff\t\xfe\n"),
        ("pairs.gz", PAIRS.encode()),
        ("pairs.gz", gzip.compress(PAIRS.encode(), mtime=0)[:-9]),
        ("pairs.gz", gzip.compress(PAIRS.encode(), mtime=0)[:10] + b"\xff" * 99),
        ("pairs.xz", PAIRS.encode()),
        ("pairs.xz", lzma.compress(PAIRS.encode())[:-40]),
    ],
)
def test_a_damaged_file_of_paraphrases_is_named(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    reason = "(: damaged or cut|: cannot be read|, line 2: invalid UTF-8)"
    with pytest.raises(UserError, match=re.escape(str(path)) + reason):
        lexicons.pairs(str(path))


def test_phrases_alone_are_refused(tmp_path):
    (tmp_path / "pairs.tsv").write_text("motion picture\tfilm\n")
    with pytest.raises(UserError, match="pairs.tsv: no pair of single words"):
        lexicons.pairs(str(tmp_path / "pairs.tsv"))


def test_the_words_of_ppdb_are_read(shared, tmp_path):
    name = "ppdb-1.0-xxxl-lexical.extended.synonyms.uniquepairs.xz"
    if not (shared / "data/lexicons" / name).is_file():
        pytest.skip(f"{name} is not in ../shared/data/lexicons")
    with lzma.open(shared / "data/lexicons" / name, "rt", encoding="utf-8") as file:
        lines = list(itertools.islice(file, 58_000, 62_000))  # one is \x16<TAB>\x1d
    (tmp_path / "pairs.tsv").write_text("".join(lines), "utf-8")
    found = lexicons.pairs(str(tmp_path / "pairs.tsv"))
    both = [tuple(line.lower().split()) for line in lines if len(line.split()) == 2]
    expected = {(a, b) for a, b in both} | {(b, a) for a, b in both}
    assert {(a, b) for a, others in found.items() for b in others} == expected
