import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from docjax.data import corpus_files
from docjax.data.corpus import Corpus, fingerprint
from docjax.data.records import full_text
from docjax.data.segments import Chunks, Joined, OneEach
from docjax.data.sources.jsonl import jsonl
from docjax.data.tokenizer import train_tokenizer
from docjax.data.units import Cut, Passages, Sentences, Whole, tokenize
from docjax.errors import UserError
from docjax.types import Document, Section

DATA = Path(__file__).resolve().parents[2] / "../shared/data"


def make(number):
    generator = np.random.default_rng(number)
    words = [
        "graph",
        "node",
        "Übung",
        "🙂🙂",
        "attention",
        "x" * 30,
        "a.",
        "b?",
        "\n\n",
    ]
    sections = tuple(
        Section(
            f"Part {i}", " ".join(generator.choice(words, generator.integers(1, 90)))
        )
        for i in range(generator.integers(1, 5))
    )
    edges = ((0, len(sections) - 1),) * (number % 3)
    label, split = f"label{number % 4}", ("train", "test", None)[number % 3]
    return Document(
        f"d{number}", sections, f"Title {number}", label, split, edges=edges
    )


DOCUMENTS = [make(number) for number in range(600)]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(map(full_text, DOCUMENTS[:50]), vocabulary=300)


@pytest.mark.parametrize("units", [Passages(), Sentences(), Whole()])
@pytest.mark.parametrize("limit", [3, 16, 1000])
def test_no_token_is_lost_and_every_unit_fits_into_a_segment(tokenizer, units, limit):
    found = tokenize(DOCUMENTS[:40], units, tokenizer, limit)
    for document, own in zip(DOCUMENTS[:40], found):
        assert own.lengths.max() <= limit - 2
        expected = tokenizer.encode([piece.text for piece in units(document)])
        np.testing.assert_array_equal(own.tokens, np.concatenate(expected))
        assert (np.diff(own.sections) >= 0).all()


@pytest.mark.parametrize("units", [Passages(), Sentences(), Whole()])
@pytest.mark.parametrize("segments", [OneEach(), Joined(), Chunks()])
@pytest.mark.parametrize("limit", [3, 16, 1000])
def test_the_texts_of_the_segments_are_the_text(tokenizer, units, segments, limit):
    cut = Cut(units, segments, tokenizer, limit)
    for document in DOCUMENTS[:20]:
        found, pieces = cut.with_texts(document)
        [fast] = cut.documents([document])
        for name in ("tokens", "offsets", "places", "edges"):
            np.testing.assert_array_equal(getattr(found, name), getattr(fast, name))
        assert [piece.section for piece in pieces] == found.sections.tolist()
        text = "".join(piece.text for piece in units(document))
        joined = "".join(piece.text for piece in pieces)
        assert joined.replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("units, told", [(Sentences(), True), (Whole(), False)])
def test_texts_without_a_sentence_end_are_cut_and_counted(
    tokenizer, units, told, tmp_path, caplog
):
    texts = ["graph " * 20, "graph. Node.", "node " * 200_000]
    documents = [Document(str(i), (Section("", x),)) for i, x in enumerate(texts)]
    corpus = Corpus.build(tmp_path / "c", documents, units, tokenizer, 512, "a")
    full = int((corpus.lengths == 510).sum())
    assert full > 300
    said = f"{full} units have as many tokens as a segment has room for (510): longer"
    assert (said in caplog.text) == told


def test_a_segment_shows_the_words_that_its_tokens_read(tokenizer):
    document = Document("d", (Section("", "graph node attention. " * 40),))
    for units, segments in ((Whole(), OneEach()), (Sentences(), Chunks())):
        cut = Cut(units, segments, tokenizer, 12)
        found, pieces = cut.with_texts(document)
        for i, piece in enumerate(pieces):
            ids = found.tokens[found.offsets[i] + 1 : found.offsets[i + 1] - 1]
            said = tokenizer.backend.decode(ids.tolist()).split()
            assert said == piece.text.split()


def test_a_limit_without_room_for_text_is_refused(tokenizer):
    with pytest.raises(UserError, match="segment_tokens 2: .* 2 special tokens"):
        tokenize(DOCUMENTS[:1], Whole(), tokenizer, 2)


def test_a_corpus_knows_the_links_and_queries_of_its_documents(tokenizer, tmp_path):
    some = [
        Document("a", (Section("H", "graph"),), links=("c", "a", "nowhere")),
        Document("b", (Section("", "node"),), query="what is a node?"),
        Document("c", (Section("", "attention"),), links=("b",)),
    ]
    corpus = build(tmp_path / "corpus", tokenizer, some)
    assert [links.tolist() for links in corpus.links] == [[2], [], [1]]
    lines = (corpus.folder / "details.jsonl").read_text().splitlines()
    assert [json.loads(line)[0] for line in lines] == [None, "what is a node?", None]


def test_words_are_counted_in_all_documents_or_some(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr("docjax.data.corpus.DOCUMENTS_AT_ONCE", 2)
    corpus = build(tmp_path / "corpus", tokenizer)
    size = tokenizer.vocabulary
    expected = [np.bincount(one.tokens, minlength=size) for one in corpus]
    np.testing.assert_array_equal(corpus.word_counts(size), sum(expected))
    some = corpus.word_counts(size, np.array([2, 0]))
    np.testing.assert_array_equal(some, expected[0] + expected[2])


def build(folder, tokenizer, documents=DOCUMENTS, print_="one"):
    return Corpus.build(folder, documents, Passages(), tokenizer, 64, print_)


def test_a_corpus_gives_back_what_was_written(tokenizer, tmp_path):
    build(tmp_path / "corpus", tokenizer)
    corpus = Corpus.open(tmp_path / "corpus")
    expected = tokenize(DOCUMENTS, Passages(), tokenizer, 64)
    assert len(corpus) == len(DOCUMENTS)
    for found, one in zip(corpus, expected, strict=True):
        for name in ("tokens", "offsets", "sections", "edges"):
            array, other = getattr(found, name), getattr(one, name)
            np.testing.assert_array_equal(array, other)
            assert array.dtype == other.dtype
    assert corpus.ids == [document.id for document in DOCUMENTS]
    assert corpus.labels == [document.label for document in DOCUMENTS]
    assert corpus.splits == [document.split for document in DOCUMENTS]
    lengths = np.concatenate([one.lengths for one in expected])
    np.testing.assert_array_equal(corpus.lengths, lengths)
    np.testing.assert_array_equal(corpus.counts, [len(one) for one in expected])
    words = [len(full_text(document).split()) for document in DOCUMENTS]
    np.testing.assert_array_equal(corpus.words, words)


def test_the_summary_counts_what_is_there(tokenizer, tmp_path):
    corpus = build(tmp_path / "corpus", tokenizer)
    assert corpus.summary() == {
        "documents": 600,
        "words": corpus.words.sum(),
        "units": len(corpus.lengths),
        "tokens": corpus.lengths.sum(),
        "edges": sum(len(document.edges) for document in DOCUMENTS),
        "longest": corpus.lengths.max(),
        "most_units": corpus.counts.max(),
        "labels": {f"label{i}": 150 for i in range(4)},
        "splits": {"train": 200, "test": 200},
    }


def test_small_vocabularies_take_two_bytes_a_token(tokenizer, tmp_path):
    corpus = build(tmp_path / "corpus", tokenizer)
    size = (tmp_path / "corpus/tokens.npy").stat().st_size
    assert size == 128 + 2 * corpus.lengths.sum()


def test_a_fresh_corpus_is_not_written_again(tokenizer, tmp_path):
    build(tmp_path / "corpus", tokenizer)

    def never():
        raise AssertionError("the source was read again")
        yield

    assert len(build(tmp_path / "corpus", tokenizer, never())) == 600


def test_a_corpus_of_another_fingerprint_is_written_again(tokenizer, tmp_path):
    build(tmp_path / "corpus", tokenizer)
    found = build(tmp_path / "corpus", tokenizer, DOCUMENTS[:5], print_="two")
    assert found.ids == [f"d{i}" for i in range(5)]


def test_a_corpus_of_the_same_contents_takes_the_new_fingerprint(tokenizer, tmp_path):
    def found(print_, contents, documents):
        folder = tmp_path / "corpus"
        cut = Passages(), tokenizer, 64
        return len(Corpus.build(folder, documents, *cut, print_, lambda: contents))

    assert found("one", "same", DOCUMENTS[:5]) == 5
    assert found("two", "same", []) == 5
    facts = corpus_files.read_facts(tmp_path / "corpus")
    assert (facts["fingerprint"], facts["contents"]) == ("two", "same")
    assert not list((tmp_path / "corpus").glob("*.partial"))
    assert found("three", "other", DOCUMENTS[:6]) == 6


def test_a_corpus_killed_while_it_is_written_is_built_anew(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.json")
    code = """if True:
        import sys, time
        from docjax.data import tokenizer
        from docjax.data import units
        from docjax.data import corpus as tokens
        from docjax.types import Document, Section
        def documents():
            for i in range(10**9):
                yield Document(str(i), (Section("", "some words"),))
        tokenizer = tokenizer.load_tokenizer("tokenizer.json")
        cut = units.Passages()
        tokens.Corpus.build("corpus", documents(), cut, tokenizer, 64, "one")
    """
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment
    )
    written = tmp_path / "corpus.partial/tokens.npy"
    while not (written.exists() and written.stat().st_size > 10_000):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with pytest.raises(UserError, match="no corpus there"):
        Corpus.open(tmp_path / "corpus")
    assert len(build(tmp_path / "corpus", tokenizer)) == 600
    assert not (tmp_path / "corpus.partial").exists()


def test_a_source_that_fails_leaves_the_old_corpus_as_it_was(tokenizer, tmp_path):
    build(tmp_path / "corpus", tokenizer)

    def failing():
        yield from DOCUMENTS[:300]
        raise UserError("bad line")

    with pytest.raises(UserError, match="bad line"):
        build(tmp_path / "corpus", tokenizer, failing(), print_="two")
    assert len(Corpus.open(tmp_path / "corpus")) == 600


def test_an_empty_corpus_is_refused(tokenizer, tmp_path):
    with pytest.raises(UserError, match="empty corpus"):
        build(tmp_path / "corpus", tokenizer, [])


def test_a_document_without_words_is_named(tokenizer, tmp_path):
    with pytest.raises(UserError, match="'blank' has no units"):
        build(tmp_path / "corpus", tokenizer, [Document("blank", (Section("", " "),))])


@pytest.mark.parametrize("name", ["documents.jsonl", "tokens.npy", "documents.npy"])
@pytest.mark.parametrize("left", [0, 0.5, 0.999])
def test_a_truncated_corpus_is_named(tokenizer, tmp_path, name, left):
    build(tmp_path / "corpus", tokenizer)
    file = tmp_path / "corpus" / name
    raw = file.read_bytes()
    file.write_bytes(raw[: int(left * len(raw))])
    with pytest.raises(UserError, match="damaged"):
        Corpus.open(tmp_path / "corpus")


def test_the_fingerprint_changes_with_everything_it_names(tokenizer, tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"id": "a", "text": "some words"}))
    source = functools.partial(jsonl, path=str(file))
    other = train_tokenizer(["some words"], vocabulary=270)

    def prints():
        yield fingerprint(source, Passages(), tokenizer, 64)
        yield fingerprint(source, Passages(), tokenizer, 65)
        yield fingerprint(source, Passages(), other, 64)
        yield fingerprint(source, Whole(), tokenizer, 64)
        cut = Passages(words=50)
        yield fingerprint(source, cut, tokenizer, 64)
        lenient = functools.partial(jsonl, path=str(file), max_bad_fraction=0.5)
        yield fingerprint(lenient, Passages(), tokenizer, 64)

    found = list(prints())
    assert len(set(found)) == len(found)
    assert list(prints()) == found
    file.write_text(json.dumps({"id": "a", "text": "other words here"}))
    assert next(prints()) not in found


def test_the_fingerprint_of_contents_knows_no_times(tokenizer, tmp_path):
    file = tmp_path / "a.jsonl"
    source = functools.partial(jsonl, path=str(file))

    def prints(text, time):
        file.write_text(text)
        os.utime(file, (time, time))
        kinds = (False, True)
        return [fingerprint(source, Passages(), tokenizer, 64, kind) for kind in kinds]

    before, later, other = prints("some", 1), prints("some", 2), prints("more", 1)
    assert before[0] == other[0] != later[0]
    assert before[1] == later[1] != other[1]


@pytest.mark.parametrize("name", ["20news", "openstax"])
def test_a_real_corpus_is_written_and_read(tokenizer, tmp_path, name):
    path = DATA / f"{name}.jsonl.xz"
    if not path.exists():
        pytest.skip(f"{name} is not in ../shared/data")
    documents = [one for _, one in zip(range(100), jsonl(str(path)))]
    corpus = build(tmp_path / "corpus", tokenizer, documents)
    assert corpus.summary()["words"] == sum(
        len(full_text(d).split()) for d in documents
    )
    assert corpus.lengths.max() <= 64
