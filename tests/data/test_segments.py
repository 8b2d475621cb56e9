import json
import lzma
import time
from pathlib import Path

import numpy as np
import pytest

from docjax.data.documents import full_text, parse
from docjax.data.segments import passages, sentences, sentences_of, whole
from docjax.types import Document, Section

DATA = Path(__file__).resolve().parents[2] / "../shared/data"

# The sentences of each text, divided by " | ".
TRICKY = [
    "Dr. Smith met Mrs. Jones at St. Mary's. | They talked.",
    "It costs $3.50 vs. $4.25 at Smith & Co. in town. | That is cheap.",
    "J. R. R. Tolkien wrote it. | W.E.B. Du Bois did not.",
    "He lives in the U.S. Army base. | He moved to the U.S. | The base is old.",
    "See Fig. 3 and Eq. 4.2 of Sec. 5. | They differ.",
    "Wait... what? | Nothing happened.",
    "He stopped… | Then he ran.",
    "1. Introduction to the topic. | 2. Methods.",
    "Visit https://example.org/a.b?c=d. | Then log in.",
    "Use numpy.array(x). | It copies by default.",
    '"Stop!" he said. | "Why?" | She left.',
    "He asked why (cf. Smith et al. 2004). | Nobody knew.",
    "Smith et al. [12] show it. | We agree.",
    "At 5 p.m. we left. | At 6 a.m. | They came back.",
    "Version 2.0.1 is out. | Version 3.0 is not.",
    "He got a Ph.D. in physics. | She got an M.D. | They married.",
    "No. 5 is alive. | Is No. 6 dead? | No. | It sleeps.",
    "On Jan. 5, 1999 it rained. | It rained until Feb. | March was dry.",
    "The end.' | Another start.",
    "The company (Acme Inc.) failed. | Its owner, Bob Jr., fled.",
    "e.g. this and i.e. that. | And so on, etc. | Then more.",
    "We took vitamin C. | The cold went away.",
    "Really?! | Yes!!! | Good.",
    "this text has no capitals. | it has full stops. | e.g. three.",
    "a film of the time . | the plot ? | two teens go to a church party .",
    "That was in 1999. | 20 people came. | Then 3 left.",
    "Items: | \n- one thing | \n- another thing | \n2) a third",
    "A heading\n\n | Its text begins here.",
    "これは文です。 | これも文です。",
    "The U.N. Security Council met on Oct. 3 in Washington, D.C. | It voted.",
    "The ratio is approx. 0.5 or .75 of it. | Fine.",
    "In Worcester v. Georgia, K.-K. Hwang and E. A. Devine lost. | (credit: a site)",
    "It ended. | <br /><br />Then more. | <br />even more.",
    "She arrived at 5 p.m. Monday. | Apple Inc. shares rose. | Why?",
]


@pytest.mark.parametrize("case", TRICKY)
def test_sentences_end_where_a_reader_ends_them(case):
    expected = [sentence.strip() for sentence in case.split(" | ")]
    assert sentences(case.replace(" | ", " ")) == expected


def test_no_character_but_white_space_is_lost():
    generator = np.random.default_rng(0)
    alphabet = np.array(list("aBc .!?…。\n\t\"')(-*1>é\u2028\x1f"))
    for _ in range(2000):
        text = "".join(generator.choice(alphabet, generator.integers(0, 60)))
        found = sentences(text)
        assert "".join("".join(found).split()) == "".join(text.split())
        assert all(sentence == sentence.strip() != "" for sentence in found)


def test_a_blank_line_ends_a_sentence():
    assert sentences("no mark here\n\n and here\n \t\nend") == [
        "no mark here",
        "and here",
        "end",
    ]


def test_hostile_text_takes_linear_time():
    text = "a. " * 50_000 + "." * 50_000 + ". " * 5_000 + ' "' * 50_000
    start = time.process_time()
    sentences(text + "x" * 50_000 + "\n " * 10_000)
    assert time.process_time() - start < 5


def document(*sections, title=""):
    return Document("d", tuple(Section(h, t) for h, t in sections), title=title)


def test_a_passage_takes_the_next_sentence_while_it_fits():
    text = "A b cat. D egg. F g h ice. Jam."
    found = passages(document(("", text)), words=5)
    assert [s.text for s in found] == ["A b cat. D egg.", "F g h ice. Jam."]


def test_a_sentence_above_the_limit_is_a_passage_alone():
    found = passages(document(("", "A bee. C d e f g ham. I jog.")), words=5)
    assert [s.text for s in found] == ["A bee.", "C d e f g ham.", "I jog."]


def test_a_passage_never_crosses_a_section_boundary():
    found = passages(document(("", "A b."), ("Two", "C d."), ("", "E.")), words=100)
    assert [(s.text, s.section) for s in found] == [
        ("A b.", 0),
        ("Two C d.", 1),
        ("E.", 2),
    ]


def test_title_and_heading_are_the_first_sentences():
    found = sentences_of(document(("Head", "A b."), ("", "C."), title="The title"))
    assert [s.text for s in found] == ["The title", "Head", "A b.", "C."]
    assert [s.section for s in found] == [0, 0, 0, 1]


def test_a_document_of_a_title_alone_has_one_passage():
    assert [s.text for s in passages(Document("d", (), title="T u"))] == ["T u"]


def test_whole_is_the_full_text_as_written():
    assert whole(document(("H", "A\n b."), title="T"))[0].text == "T\n\nH\n\nA\n b."


@pytest.mark.parametrize("cut", [passages, sentences_of, whole])
@pytest.mark.parametrize("name", ["20news", "openstax"])
def test_the_words_of_real_documents_are_all_there_in_order(name, cut):
    for one in real(name, 200):
        words = [word for segment in cut(one) for word in segment.text.split()]
        assert words == full_text(one).split()


@pytest.mark.parametrize("name", ["20news", "openstax"])
def test_passages_of_real_documents_hold_at_most_100_words_or_one_sentence(name):
    checked = 0
    for one in real(name, 200):
        cut = {" ".join(s.text.split()) for s in sentences_of(one)}
        for passage in passages(one, words=100):
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
