import time

import numpy as np
import pytest

from docjax.data.sentences import sentences

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
