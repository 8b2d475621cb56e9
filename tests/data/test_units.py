import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from docjax.data.documents import parse
from docjax.data.records import full_text
from docjax.data.segments import Joined, OneEach
from docjax.data.tokenizer import load_tokenizer
from docjax.data.units import Cut, Passages, Sentences, Whole, WholeSections
from docjax.types import Document, Section

DATA = Path(__file__).resolve().parents[2] / "../shared/data"


def document(*sections, title=""):
    return Document("d", tuple(Section(h, t) for h, t in sections), title=title)


def test_a_passage_takes_the_next_sentence_while_it_fits():
    text = "A b cat. D egg. F g h ice. Jam."
    found = Passages(words=5)(document(("", text)))
    assert [s.text for s in found] == ["A b cat. D egg.", "F g h ice. Jam."]


def test_a_sentence_above_the_limit_is_a_passage_alone():
    found = Passages(words=5)(document(("", "A bee. C d e f g ham. I jog.")))
    assert [s.text for s in found] == ["A bee.", "C d e f g ham.", "I jog."]


def test_a_passage_never_crosses_a_section_boundary():
    found = Passages(words=100)(document(("", "A b."), ("Two", "C d."), ("", "E.")))
    assert [(s.text, s.section) for s in found] == [
        ("A b.", 0),
        ("Two C d.", 1),
        ("E.", 2),
    ]


def test_title_and_heading_are_the_first_sentences():
    found = Sentences()(document(("Head", "A b."), ("", "C."), title="The title"))
    assert [s.text for s in found] == ["The title", "Head", "A b.", "C."]
    assert [s.section for s in found] == [0, 0, 0, 1]


def test_a_document_of_a_title_alone_has_one_passage():
    assert [s.text for s in Passages()(Document("d", (), title="T u"))] == ["T u"]


def test_whole_is_the_full_text_as_written():
    assert Whole()(document(("H", "A\n b."), title="T"))[0].text == "T\n\nH\n\nA\n b."


def test_whole_sections_are_their_texts_as_written():
    found = WholeSections()(document(("H", "A\n b."), ("", ""), ("", "C"), title="T"))
    assert [(s.text, s.section) for s in found] == [("T\n\nH\n\nA\n b.", 0), ("C", 2)]
    one = document(("H", "A\n b."), title="T")
    assert WholeSections()(one) == Whole()(one)
    title = Document("d", (), title="T u")
    assert WholeSections()(title) == Whole()(title)


@pytest.mark.parametrize("cut", [Passages(), Sentences(), Whole(), WholeSections()])
@pytest.mark.parametrize("name", ["20news", "openstax"])
def test_the_words_of_real_documents_are_all_there_in_order(name, cut):
    for one in real(name, 200):
        words = [word for segment in cut(one) for word in segment.text.split()]
        assert words == full_text(one).split()


@pytest.mark.parametrize("name", ["20news", "openstax"])
def test_passages_of_real_documents_hold_at_most_100_words_or_one_sentence(name):
    checked = 0
    for one in real(name, 200):
        cut = {" ".join(s.text.split()) for s in Sentences()(one)}
        for passage in Passages(words=100)(one):
            checked += 1
            assert len(passage.text.split()) <= 100 or passage.text in cut
    assert checked > 500


def real(name, count):
    path = DATA / f"{name}.jsonl.xz"
    if not path.exists():
        pytest.skip(f"{name} is not in ../shared/data")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for number, line in zip(range(count), lines):
            yield parse(json.loads(line), f"line {number}")


@pytest.mark.parametrize(
    "segments, lengths, texts",
    [
        (OneEach(), [5, 3, 5, 4], {0: ["A bee."], 2: ["C", "D e f ", "g."]}),
        (Joined(), [5, 5, 5], {0: ["A bee."], 2: ["C D e ", "f g."]}),
    ],
    ids=["one_each", "joined"],
)
def test_a_text_without_tokens_is_no_unit_and_texts_stay_beside_their_segments(
    minilm, segments, lengths, texts
):
    cut = Cut(Sentences(), segments, load_tokenizer(minilm), 5)
    one = document(("\u200b", "A bee.\n\n\ufeff"), ("", "\u200b"), ("C", "D e f g."))
    [plain] = cut.documents([one])
    with_texts, pieces = cut.with_texts(one)
    assert plain.tokens.tolist() == with_texts.tokens.tolist()
    assert plain.lengths.tolist() == lengths
    assert plain.places.tolist() == [[0, 0], *([2, n] for n in range(len(texts[2])))]
    expected = [(text, section) for section in texts for text in texts[section]]
    assert [(p.text, p.section) for p in pieces] == expected


def test_a_text_without_sentence_ends_fills_the_segment_of_its_title(minilm):
    """And the texts of segments are the words whose tokens they have."""
    words = " ".join("cat dog kindheartedly" for _ in range(30))
    long = document(("", words), title="The title")
    cut = Cut(Sentences(), Joined(), load_tokenizer(minilm), 32)
    found, passages = cut.with_texts(long)
    *full, last = np.diff(found.offsets).tolist()
    assert len(full) > 4 and set(full) == {32} and last <= 32
    texts = [passage.text for passage in passages]
    assert "".join(texts) == "The title " + words  # some end inside of a word
    plain = cut.documents([long])[0]
    np.testing.assert_array_equal(plain.tokens, found.tokens)


@pytest.mark.parametrize("units", [Passages(), Sentences(), Whole(), WholeSections()])
def test_a_document_without_any_token_is_one_empty_unit(minilm, units):
    cut = Cut(units, OneEach(), load_tokenizer(minilm), 8)
    blank = document(("", "\u200b\n\n\ufeff"), ("", "\u200b"))
    [plain] = cut.documents([blank])
    with_texts, pieces = cut.with_texts(blank)
    assert plain.lengths.tolist() == with_texts.lengths.tolist() == [2]
    assert len(pieces) == 1
