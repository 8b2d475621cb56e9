"""Documents of one unit that training reads as two units."""

import numpy as np
import pytest

from docjax.data.corpus import Corpus
from docjax.data.halved import Halved, TrainingCorpus
from docjax.data.records import full_text
from docjax.data.tokenizer import train_tokenizer
from docjax.data.units import WholeSections
from docjax.types import Document, Section

WORDS = "graph node passage vector batch token of and loss seed view".split()
COUNTS = (3, 40, 41, 12, 90)  # words; the last document has two sections


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    generator = np.random.default_rng(0)
    texts = [" ".join(generator.choice(WORDS, count)) for count in COUNTS]
    documents = [Document(str(i), (Section("", t),)) for i, t in enumerate(texts[:-1])]
    parts = texts[-1][:200], texts[-1][200:]
    documents.append(Document("4", tuple(Section("", part) for part in parts)))
    tokenizer = train_tokenizer(map(full_text, documents), 270)
    folder = tmp_path_factory.mktemp("corpus") / "corpus"
    return Corpus.build(folder, documents, WholeSections(), tokenizer, 512, "f")


def test_documents_of_one_long_unit_are_cut_in_the_middle(corpus):
    cut = Halved.of(corpus, np.array([4, 2, 1, 0]), tokens=60)
    assert cut.rows.tolist() == [1, 2] and len(cut) == 2
    whole, halves = corpus[2], cut[1]
    assert halves.tokens.tolist() == whole.tokens.tolist()
    middle, end = len(whole.tokens) // 2, len(whole.tokens)
    assert halves.lengths.tolist() == [middle, end - middle]
    assert cut.lengths.reshape(2, 2)[1].tolist() == halves.lengths.tolist()
    assert halves.documents.tolist() == [2, 2] and halves.sections.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("most", "rows"),
    [(None, [0, 1, 2, 3]), (3, [0, 1, 2]), (2, [0, 2]), (9, [0, 1, 2, 3])],
)
def test_an_even_sample_of_many_documents_is_cut(corpus, most, rows):
    cut = Halved.of(corpus, np.arange(5), tokens=2, most=most)
    assert cut.rows.tolist() == rows


def test_no_document_may_be_long_enough(corpus):
    assert not Halved.of(corpus, np.arange(5), tokens=9999, most=3)


def test_training_reads_the_halves_with_their_vectors_and_the_rest_as_it_is(corpus):
    vectors = np.arange(len(corpus.lengths), dtype=np.float32)[:, None]
    whole = corpus.with_vectors(vectors)
    cut = Halved.of(whole, np.arange(5), tokens=60)
    cut = cut.with_vectors(np.array([[10.0], [11], [20], [21]], np.float32))
    read = TrainingCorpus(whole, cut)
    assert read.counts.tolist() == [1, 2, 2, 1, 2]
    assert read[1].vectors.tolist() == [[10], [11]]
    assert read[2].vectors.tolist() == [[20], [21]]
    for row in (0, 3, 4):
        np.testing.assert_array_equal(read[row].vectors, whole[row].vectors)
        assert len(read[row]) == corpus.counts[row]
    assert read.ids == corpus.ids


def test_sections_are_those_of_a_document(corpus, tmp_path):
    assert corpus.has_sections
    tokenizer = train_tokenizer(["a text"] * 9, 270)
    sections = [(Section("", ""), Section("", "a")), (Section("", "a text"),)]
    documents = [Document(str(i), each) for i, each in enumerate(sections)]
    cut = WholeSections(), tokenizer, 512, "f"
    assert not Corpus.build(tmp_path / "one each", documents, *cut).has_sections
