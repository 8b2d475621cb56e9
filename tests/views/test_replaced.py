"""Documents and their paraphrases: which words may change, into what, and how often."""

import dataclasses
import itertools
import json
from collections import Counter

import numpy as np
import pytest

from docjax.data import lexicons
from docjax.data.corpus import Corpus
from docjax.data.segments import OneEach, segments
from docjax.data.tokenizer import load_tokenizer
from docjax.data.units import Whole
from docjax.data.vocabulary import vocabulary
from docjax.data.word_tokenizer import train_words
from docjax.errors import UserError
from docjax.types import Document, Section, Segments, Units
from docjax.views import rewritten
from docjax.views.replaced import (
    Antonyms,
    Dropped,
    Paraphrases,
    Replaced,
    Uninformative,
    WordNet,
)
from docjax.views.rewritten import Rewritten, write

SYNONYMS = {
    "film": {"film", "movie", "flick", "picture"},
    "movie": {"movie", "film"},
    "flick": {"flick", "film", "movie"},
    "big": {"big", "large"},
}
ANTONYMS = {"good": {"bad", "evil"}, "big": {"small"}, "love": {"hate"}}
# Counts: film 4, movie 3, flick 1, big 2, large 1; "picture" is not there.
FILMS = ["the film a movie", "film movie film", "", "film movie flick big big large"]
OPINIONS = ["the good love of a big bad film is not small", "good", "hate"]


class Thesaurus:
    """Stands in for WordNet."""

    def __init__(self, folder=None):
        pass

    def synonyms(self, word):
        return SYNONYMS.get(word, set())

    def antonyms(self, word):
        return ANTONYMS.get(word, set())


class Tagger(lexicons.Tagger):  # the views check its type
    """Stands in for NLTK's; "love" is a noun after an article or an adjective."""

    def __init__(self, folder=None):
        pass

    def is_adjective_or_verb(self, words):
        nouns = [before in ("the", "good") for before in ["", *words[:-1]]]
        return [
            word in ANTONYMS and not (word == "love" and noun)
            for word, noun in zip(words, nouns, strict=True)
        ]


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Synonyms, antonyms and tags are those above."""
    monkeypatch.setattr(lexicons, "WordNet", Thesaurus)
    monkeypatch.setattr(lexicons, "Tagger", Tagger)


@dataclasses.dataclass
class Built:
    """A corpus of texts, and how its tokens read."""

    folder: object
    texts: list[str]
    tokenizer: object = None
    limit: int = 64

    def __post_init__(self):
        if self.tokenizer is None:
            self.tokenizer = train_words(self.texts, least_count=1, stop_words=False)
        self.documents = [
            Document(f"d{i}", (Section("", text),)) for i, text in enumerate(self.texts)
        ]
        self.corpus = Corpus.build(
            self.folder / "corpus",
            self.documents,
            Whole(),
            self.tokenizer,
            self.limit,
            "one",
        )

    def fitted(self, views):
        return views.fitted(self.tokenizer, self.corpus)

    def read(self, units: Units | Segments) -> list[str]:
        """The words of each unit, or of each segment."""
        word = self.tokenizer.backend.id_to_token
        words = [word(i).removeprefix("\u2581") for i in units.tokens.tolist()]
        bounds = itertools.pairwise(units.offsets)
        return [" ".join(words[start:end]) for start, end in bounds]

    def units(self, *texts: str) -> Units:
        """A document of these units."""
        ids = self.tokenizer.encode(texts)
        return Units(
            np.concatenate(ids),
            np.cumsum([0, *map(len, ids)]),
            np.arange(len(ids), dtype=np.int32),
            np.zeros((0, 2), np.int32),
        )


def table(views: Replaced) -> dict[str, set[str]]:
    """What each word may become."""
    words, starts = views.vocabulary.words, views.starts
    rows = [views.candidates[a:b] for a, b in itertools.pairwise(starts)]
    return {
        word: {words[i] for i in row}
        for word, row in zip(words, rows, strict=True)
        if len(row)
    }


def assert_sound(units: Units):
    """Offsets and kinds are those that segments rely on."""
    assert units.tokens.dtype == np.int32
    assert units.offsets.dtype == np.int64
    assert units.offsets[0] == 0
    assert units.offsets[-1] == len(units.tokens)
    assert len(units.offsets) == len(units) + 1
    assert (units.lengths >= 0).all()


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_word_becomes_a_frequent_synonym_of_the_vocabulary_or_stays(tmp_path):
    views = Built(tmp_path, FILMS).fitted(WordNet(least_count=2))
    assert table(views) == {
        "film": {"film", "movie"},
        "movie": {"film", "movie"},
        "flick": {"film", "movie", "flick"},  # rare, but itself
        "big": {"big"},
        **{word: {word} for word in ("the", "a", "large")},
    }


def test_all_synonyms_are_used_that_are_frequent_enough(tmp_path):
    views = Built(tmp_path, FILMS).fitted(WordNet(least_count=1))
    assert table(views)["film"] == {"film", "movie", "flick"}
    assert table(views)["big"] == {"big", "large"}


def test_every_synonym_comes_equally_often_on_its_own(tmp_path):
    built = Built(tmp_path, FILMS)
    views, draws = built.fitted(WordNet(least_count=1)), 6000
    document = built.units("film flick the")
    generator = rng()
    seen = Counter(built.read(views(document, generator)[1])[0] for _ in range(draws))
    synonyms = ("film", "movie", "flick")
    assert set(seen) == {f"{one} {other} the" for one in synonyms for other in synonyms}
    # Each count is binomial with p = 1/9: five deviations from it is beyond chance.
    deviation = (draws * 1 / 9 * 8 / 9) ** 0.5
    assert all(abs(count - draws / 9) < 5 * deviation for count in seen.values())


def test_the_first_view_is_the_document_as_it_is(tmp_path):
    built = Built(tmp_path, FILMS)
    document = built.units("film movie", "big flick")
    before = document.tokens.copy()
    for kind in (WordNet(least_count=1), Uninformative(below=3)):
        one, other = built.fitted(kind)(document, rng())
        assert one is document
        np.testing.assert_array_equal(document.tokens, before)
        assert (other.tokens != before).any()


def test_a_paraphrase_keeps_all_but_the_tokens(tmp_path):
    built = Built(tmp_path, FILMS)
    views = built.fitted(WordNet(least_count=1))
    document = dataclasses.replace(
        built.units("film", "", "movie film"),
        edges=np.array([[0, 2]], np.int32),
        documents=np.full(3, 7),
    )
    other = views(document, rng())[1]
    assert_sound(other)
    for name in ("offsets", "sections", "edges", "documents"):
        np.testing.assert_array_equal(getattr(other, name), getattr(document, name))


@pytest.mark.parametrize(
    "kind", [WordNet(least_count=1), Antonyms(), Uninformative(below=15), Dropped()]
)
def test_equal_seeds_give_equal_paraphrases_and_others_do_not(tmp_path, kind):
    texts = ["good film flick big love " * 9, "film movie " * 20, "bad small not " * 5]
    built = Built(tmp_path, texts)
    views = kind if isinstance(kind, Dropped) else built.fitted(kind)
    document = built.corpus[0]
    first, again, other = (views(document, rng(seed))[1] for seed in (3, 3, 4))
    assert built.read(first) == built.read(again)
    assert built.read(first) != built.read(other)


def test_only_the_given_share_of_words_is_drawn_anew(tmp_path):
    built = Built(tmp_path, FILMS)
    views = built.fitted(Uninformative(below=3))  # flick becomes film or movie
    views = dataclasses.replace(views, probability=0.25)
    document = built.units("flick " * 4000)
    changed = views(document, rng())[1].tokens != document.tokens
    assert abs(changed.sum() - 1000) < 5 * (4000 * 0.25 * 0.75) ** 0.5


def test_rare_words_become_frequent_synonyms_and_never_stay(tmp_path):
    built = Built(tmp_path, FILMS)
    views = built.fitted(Uninformative(below=3))
    assert table(views) == {"flick": {"film", "movie"}}  # large is rare too
    read = built.read(views(built.units("flick the film big"), rng())[1])
    assert read[0] in ("film the film big", "movie the film big")


def test_paraphrases_are_the_pairs_of_a_file_or_the_word_itself(tmp_path):
    (tmp_path / "pairs.tsv").write_text("film\tflick\nmovie\tFilm\nbig\thuge\na\tb\n")
    built = Built(tmp_path, FILMS)
    views = built.fitted(Paraphrases(str(tmp_path / "pairs.tsv"), least_count=2))
    assert table(views) == {
        "film": {"film", "movie"},
        "movie": {"film", "movie"},
        "flick": {"flick", "film"},
        "big": {"big"},
        "a": {"a"},
    }


def test_antonyms_are_of_words_that_are_mostly_adjectives_or_verbs(tmp_path):
    built = Built(tmp_path, OPINIONS)
    assert table(built.fitted(Antonyms())) == {"good": {"bad"}, "big": {"small"}}
    more = [*OPINIONS, "they love it", "we love it"]  # twice of three times
    built = Built(tmp_path / "more", more)
    assert table(built.fitted(Antonyms()))["love"] == {"hate"}
    equal = [*OPINIONS, "they love it"]
    built = Built(tmp_path / "equal", equal)
    assert "love" not in table(built.fitted(Antonyms()))


def test_tags_are_of_occurrences_all_over_the_corpus(tmp_path):
    texts = [*OPINIONS, *["the love"] * 50, *["we love"] * 60]
    built = Built(tmp_path, texts)
    assert table(built.fitted(Antonyms()))["love"] == {"hate"}


def test_tags_are_of_words_in_their_document(tmp_path):
    texts = [*OPINIONS, *["ends with the", "love it"] * 9]
    built = Built(tmp_path, texts)
    assert table(built.fitted(Antonyms()))["love"] == {"hate"}  # not "the love"


def test_occurrences_are_taken_from_a_part_of_a_large_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr("docjax.data.vocabulary.READ", 100)
    texts = [*OPINIONS, *["they love it", "some new text"] * 99]
    built, read = Built(tmp_path, texts), []
    concatenated = built.corpus.concatenated

    def found(documents, limit=None):
        read.append(concatenated(documents, limit))
        return read[-1]

    monkeypatch.setattr(built.corpus, "concatenated", found)
    assert table(built.fitted(Antonyms()))["love"] == {"hate"}
    assert 50 < len(read[-1].tokens) <= 100


def test_an_antonym_comes_after_not_in_every_unit(tmp_path):
    built = Built(tmp_path, OPINIONS)
    views = built.fitted(Antonyms(probability=1.0))
    document = built.units(
        "", "good film", "film", "", "a big good big", "big", "", "the film good", ""
    )
    found = views(document, rng())[1]
    assert_sound(found)
    expected = [
        text.replace("good", "not bad").replace("big", "not small")
        for text in built.read(document)
    ]
    assert built.read(found) == expected
    np.testing.assert_array_equal(found.sections, document.sections)


def test_half_of_the_words_become_antonyms(tmp_path):
    built = Built(tmp_path, OPINIONS)
    views = built.fitted(Antonyms())
    found = views(built.units("good " * 4000), rng())[1]
    changed = len(found.tokens) - 4000
    assert abs(changed - 2000) < 5 * (4000 * 0.5 * 0.5) ** 0.5
    back = built.read(found)[0].replace("not bad", "good")
    assert back == " ".join(["good"] * 4000)


def test_a_unit_grows_by_a_word_for_each_antonym(tmp_path):
    built = Built(tmp_path, [*OPINIONS, "good " * 14], limit=14)
    views = built.fitted(Antonyms(probability=1.0))
    generator = rng(1)
    for _ in range(20):
        counts = generator.integers(0, 15, 6)
        texts = [
            " ".join(generator.choice(["good", "film", "big"], count))
            for count in counts
        ]
        found = views(built.units(*texts), generator)[1]
        assert_sound(found)
        chances = [text.count("good") + text.count("big") for text in texts]
        np.testing.assert_array_equal(found.lengths, counts + chances)
        back = [
            text.replace("not bad", "good").replace("not small", "big")
            for text in built.read(found)
        ]
        assert back == texts
    found = views(built.corpus[3], rng())[1]
    assert built.read(found) == [" ".join(["not bad"] * 14)]


def test_a_view_with_other_words_has_no_vectors_of_the_old_ones(tmp_path):
    built = Built(tmp_path, [*OPINIONS, *FILMS])
    document = built.units("good film", "movie", "a film")
    document = dataclasses.replace(document, vectors=np.ones((3, 2), np.float32))
    path = write_lines(tmp_path / "back.jsonl", d0="movie")
    kinds = Antonyms(), WordNet(least_count=1), Rewritten(path)
    for views in (Dropped(), *map(built.fitted, kinds)):
        numbered = dataclasses.replace(document, documents=np.zeros(3, int))
        one, other = views(numbered, rng())
        assert one.vectors is document.vectors and other.vectors is None


@pytest.fixture(scope="module")
def wordpiece(minilm):
    return load_tokenizer(minilm)


def test_words_in_pieces_and_special_tokens_stay(tmp_path, wordpiece):
    texts = ["Embeddings, or em: unhappiest un word2vec!", "A film " * 20]
    built = Built(tmp_path, texts, wordpiece, limit=20)
    words = vocabulary(wordpiece, built.corpus)
    film, size = words.ids["film"], wordpiece.vocabulary
    views = Replaced(words, np.arange(size + 1), np.full(size, film, np.int32))
    for document in built.corpus:
        cut = segments(document, OneEach(), wordpiece.frame(20))
        document = Units(cut.tokens, cut.offsets, cut.sections, cut.edges)
        tokens = [*" ".join(built.read(document)).split(), "."]
        expected = [
            one if one[:2] == "##" or after[:2] == "##" or one[0] == "[" else "film"
            for one, after in itertools.pairwise(tokens)
        ]
        assert " ".join(built.read(views(document, rng())[1])).split() == expected
        assert "film" in expected and "[SEP]" in expected


def test_special_tokens_and_pieces_have_no_synonyms(tmp_path, wordpiece, monkeypatch):
    monkeypatch.setattr(Thesaurus, "synonyms", lambda self, word: {"film", "[MASK]"})
    views = Built(tmp_path, ["a film", "film"], wordpiece).fitted(
        WordNet(least_count=2)
    )
    tokens = set(wordpiece.backend.get_vocab())
    words = {token for token in tokens if token.isalpha()}
    assert table(views) == {word: {word, "film"} for word in words}


def test_word_pieces_beyond_a_segment_go_on_in_another_one(tmp_path, wordpiece):
    texts = ["good big film " * 7, "the bad small film is not good", "good"]
    built = Built(tmp_path, texts, wordpiece, limit=10)
    views = built.fitted(Antonyms(probability=1.0))
    frame, words = wordpiece.frame(10), []
    for document in built.corpus:
        found = views(document, rng())[1]
        assert_sound(found)
        cut = segments(found, OneEach(), frame)
        assert cut.lengths.max() <= 10
        assert (cut.tokens[cut.offsets[:-1]] == wordpiece.prefix).all()
        assert (cut.tokens[cut.offsets[1:] - 1] == wordpiece.suffix).all()
        bare = [text.removeprefix("[CLS] ") for text in built.read(cut)]
        words.append(" ".join(text.removesuffix(" [SEP]") for text in bare))
    assert words == [
        ("not bad not small film " * 7).strip(),
        "the bad small film is not not bad",
        "not bad",
    ]


def test_words_are_left_out_with_their_probability(tmp_path):
    built = Built(tmp_path, FILMS)
    other = Dropped(probability=0.3)(built.units("film " * 4000), rng())[1]
    assert abs(len(other.tokens) - 2800) < 5 * (4000 * 0.3 * 0.7) ** 0.5


def test_the_words_that_are_kept_stay_in_their_unit_in_order():
    lengths, generator = np.array([0, 3, 1, 0, 9, 1, 0]), rng()
    document = Units(
        np.arange(14, dtype=np.int32),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.arange(7, dtype=np.int32),
        np.zeros((0, 2), np.int32),
    )
    for _ in range(100):
        one, other = Dropped(probability=0.7)(document, generator)
        assert one is document
        assert_sound(other)
        assert (np.diff(other.tokens) > 0).all()
        np.testing.assert_array_equal(other.lengths > 0, lengths > 0)
        homes = np.repeat(np.arange(7), other.lengths)
        np.testing.assert_array_equal(
            homes, np.repeat(np.arange(7), lengths)[other.tokens]
        )


def test_a_unit_keeps_one_word_at_least(tmp_path):
    built = Built(tmp_path, FILMS)
    document = built.units("film movie", "", "big", "the a film")
    other = Dropped(probability=1.0)(document, rng())[1]
    assert built.read(other) == ["film", "", "big", "the"]


def write_lines(path, **texts) -> str:
    lines = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    path.write_text("\n".join(lines))
    return str(path)


def test_rewritten_documents_are_read_from_a_file(tmp_path):
    built = Built(tmp_path, FILMS)
    path = write_lines(
        tmp_path / "back.jsonl", d3="a big movie", other="the", d0="Flick, the film!"
    )
    views = built.fitted(Rewritten(path))
    for number, text in ((0, "flick the film"), (3, "a big movie")):
        one, other = views(built.corpus[number], rng())
        assert built.read(one) == [FILMS[number]]
        assert built.read(other) == [text]
        assert_sound(other)


def test_rewritten_texts_of_other_documents_are_refused(tmp_path):
    built = Built(tmp_path, FILMS)
    path = write_lines(tmp_path / "back.jsonl", x="film")
    with pytest.raises(
        UserError, match="none of its 1 texts .* first id is 'x', a document has 'd0'"
    ):
        built.fitted(Rewritten(path))


def test_documents_without_rewritten_text_stay_and_are_counted(tmp_path, monkeypatch):
    warned = []
    monkeypatch.setattr(
        rewritten.logger, "warning", lambda *words: warned.append(words)
    )
    built = Built(tmp_path, FILMS)
    views = built.fitted(Rewritten(write_lines(tmp_path / "back.jsonl", d1="movie")))
    document = built.corpus[0]
    assert views(document, rng()) == (document, document)
    assert [words[1:] for words in warned] == [(3, 4)]


def test_a_rewritten_text_of_unknown_words_is_none(tmp_path, monkeypatch):
    warned = []
    monkeypatch.setattr(
        rewritten.logger, "warning", lambda *words: warned.append(words)
    )
    built = Built(tmp_path, FILMS)
    texts = dict(d0="qqqq zzzz", d1="movie", d2="big", d3="film")
    views = built.fitted(Rewritten(write_lines(tmp_path / "back.jsonl", **texts)))
    document = built.corpus[0]
    assert views(document, rng()) == (document, document)
    assert [words[1:] for words in warned] == [(1, 4)]


def test_words_are_counted_and_tagged_in_some_documents_alone(tmp_path):
    built = Built(tmp_path, [*OPINIONS, "the love", "the love", "bad bad bad"])
    first = np.array([0, 1, 2])
    views = Antonyms(least_count=3).fitted
    assert table(views(built.tokenizer, built.corpus))["good"] == {"bad"}
    with pytest.raises(UserError, match="occurs 3 times"):
        views(built.tokenizer, built.corpus, first)
    views = Antonyms().fitted
    built = Built(tmp_path / "tags", [*OPINIONS, "love", "love"])
    assert table(views(built.tokenizer, built.corpus))["love"] == {"hate"}
    assert "love" not in table(views(built.tokenizer, built.corpus, first))


def test_a_function_writes_the_file_in_batches_and_goes_on(tmp_path):
    built, sizes = Built(tmp_path, [f"film {i}" for i in range(600)]), []

    def rewrite(texts: list[str]) -> list[str]:
        sizes.append(len(texts))
        if len(sizes) == 2:
            raise KeyboardInterrupt
        return [" ".join(text.split()[::-1]) for text in texts]

    path = str(tmp_path / "back.jsonl")
    with pytest.raises(KeyboardInterrupt):
        write(path, built.documents, rewrite)
    with open(path, "a") as file:
        file.write('{"id": "d256", "te')  # cut off
    write(path, built.documents, rewrite)
    assert sizes == [256, 256, 256, 88]
    views = built.fitted(Rewritten(path))
    for i, document in enumerate(built.corpus):
        assert built.read(views(document, rng())[1]) == [f"{i} film"]


def test_a_file_of_rewritten_texts_is_kept_or_refused(tmp_path):
    documents, path = Built(tmp_path, FILMS).documents, tmp_path / "back.jsonl"
    path.write_text('{"id": "d0", "text": "x"}\n{"id": "d1", "text": "no end"}')
    write(path, documents, lambda texts: ["y"] * len(texts))
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert {one["id"]: one["text"] for one in found} == dict(
        d0="x", d1="no end", d2="y", d3="y"
    )
    for text in ("no JSON\n", '{"id": "d0"}\n', "[1]\n"):
        path.write_text(text)
        with pytest.raises(UserError, match=r"back\.jsonl, line 1: not a rewritten"):
            write(path, documents, list)
        assert path.read_text() == text
    with pytest.raises(UserError, match="No such file or directory"):
        write(tmp_path / "none" / "back.jsonl", documents, list)
    with pytest.raises(UserError, match="plain text, compress it afterwards"):
        write(tmp_path / "back.jsonl.gz", documents, list)


def test_a_rewritten_text_that_is_longer_goes_on_in_further_units(tmp_path):
    built = Built(tmp_path, ["film film movie", "movie"])
    path = tmp_path / "back.jsonl"
    views = built.fitted(
        Rewritten(write_lines(path, d0="film movie movie film film film movie"))
    )
    found = [built.read(views(document, rng())[1]) for document in built.corpus]
    assert found == [["film movie movie", "film film film", "movie"], ["movie"]]


def test_several_documents_may_come_in_one_piece(tmp_path):
    built = Built(tmp_path, ["film film movie", "movie", "", "big"])
    path, long = tmp_path / "back.jsonl", "film movie movie film film film movie"
    views = built.fitted(Rewritten(write_lines(path, d3="large", d1=long, d2="big")))
    chosen = np.array([3, 1, 0, 2])
    first, second = views(built.corpus.concatenated(chosen), rng())
    assert_sound(second)
    parts = [built.corpus[i] for i in chosen.tolist()]
    for view, documents in (
        (first, parts),
        (second, [views(part, rng())[1] for part in parts]),
    ):
        for number, document in zip(chosen, documents, strict=True):
            own = view.take(np.flatnonzero(view.documents == number))
            assert built.read(own) == built.read(document)


def test_a_function_that_loses_a_text_is_told(tmp_path):
    documents = Built(tmp_path, FILMS).documents
    with pytest.raises(UserError, match="rewrite gave 3 texts for 4"):
        write(tmp_path / "back.jsonl", documents, lambda texts: texts[1:])


def test_a_text_that_is_rewritten_to_nothing_stays_as_it_is(tmp_path):
    built, path = Built(tmp_path, ["film", "movie"]), tmp_path / "back.jsonl"
    write(path, built.documents, lambda texts: ["", "big movie"])
    views = built.fitted(Rewritten(str(path)))
    found = [built.read(views(document, rng())[1]) for document in built.corpus]
    assert found == [["film"], ["movie"]]


@pytest.mark.parametrize("kind, what", [(Rewritten, "texts"), (Paraphrases, "pairs")])
def test_other_words_come_from_a_file(kind, what):
    with pytest.raises(UserError, match=f"needs a file of {what}"):
        kind().files()
    with pytest.raises(UserError, match="none: no such file"):
        kind("none").files()


@pytest.mark.parametrize(
    "kind",
    [
        WordNet(least_count=1),
        Antonyms(),
        Uninformative(below=3),
        Dropped(),
        Rewritten("back.jsonl"),
    ],
)
def test_an_empty_document_stays_empty(tmp_path, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "back.jsonl", d0="film")
    built = Built(tmp_path, [*FILMS, *OPINIONS])
    views = kind if isinstance(kind, Dropped) else built.fitted(kind)
    for document in (built.corpus[2], built.corpus[2].take(np.array([], int))):
        for one in views(document, rng()):
            assert_sound(one)
            assert not len(one.tokens)


@pytest.mark.parametrize("probability", [-0.1, 1.5])
@pytest.mark.parametrize("kind", [Dropped, Antonyms])
def test_a_probability_is_between_0_and_1(kind, probability):
    with pytest.raises(
        UserError, match=f"{kind.__name__} has probability {probability}"
    ):
        kind(probability=probability)


def test_antonyms_without_not_are_refused(tmp_path):
    built = Built(tmp_path, ["good bad"])
    with pytest.raises(UserError, match=r'no word "not".* \(keep\)'):
        built.fitted(Antonyms())


@pytest.mark.parametrize(
    "kind, text",
    [
        (WordNet(least_count=1), "the gute film"),  # film stays film
        (WordNet(least_count=3), "film film movie"),
        (Uninformative(below=2), "film film large big"),
        (Uninformative(below=9), "film film movie"),
        (Antonyms(), "good love not"),
        (Antonyms(), "the love not hate"),  # a noun
        (Antonyms(least_count=2), "good bad not"),
    ],
)
def test_views_without_any_replacement_are_refused(tmp_path, kind, text):
    with pytest.raises(UserError, match="no word of the vocabulary has a replacement"):
        Built(tmp_path, [text]).fitted(kind)


def test_paraphrases_without_a_file_say_where_to_name_one(tmp_path):
    with pytest.raises(UserError, match="file of pairs: give --config.views.path"):
        Built(tmp_path, FILMS).fitted(Paraphrases())


def test_pairs_of_other_words_are_refused(tmp_path):
    (tmp_path / "pairs.tsv").write_text("film\tpicture\nhuge\tlarge\n")
    built = Built(tmp_path, ["film movie"])
    with pytest.raises(UserError, match="no word of the vocabulary has a replacement"):
        built.fitted(Paraphrases(str(tmp_path / "pairs.tsv")))


def test_the_real_wordnet_gives_synonyms(tmp_path, wordnet, monkeypatch):
    monkeypatch.setattr(lexicons, "WordNet", lambda folder: wordnet)
    texts = ["the automobile and the car", "cars in a movie or film"]
    found = table(Built(tmp_path, texts).fitted(WordNet(least_count=1)))
    assert found["car"] == found["automobile"] == {"car", "automobile"}
    assert found["cars"] == {"cars", "car", "automobile"}
    assert found["movie"] == {"movie", "film"}
    assert found["the"] == {"the"}


def test_the_real_tagger_tells_verbs_from_nouns(
    tmp_path, wordnet, nltk_data, monkeypatch
):
    monkeypatch.setattr(lexicons, "WordNet", lambda folder: wordnet)
    monkeypatch.setattr(lexicons, "Tagger", Tagger.__base__)
    kind = Antonyms(lexicons=nltk_data)
    noun = ["it is a very good film about the love of his life , not bad", "hate ."]
    assert table(Built(tmp_path / "noun", noun).fitted(kind))["good"] == {"bad"}
    assert "love" not in table(Built(tmp_path / "noun", noun).fitted(kind))
    verb = [*noun, "you will love this film .", "they love to see it ."]
    assert table(Built(tmp_path / "verb", verb).fitted(kind))["love"] == {"hate"}
