"""The lines of a passage around the words of a question."""

import pytest

from docjax.model.hits import Hit, Hits, excerpt, one_line

BEFORE = " ".join(f"{i}before" for i in range(100))
AFTER = " ".join(f"{i}after" for i in range(100))


@pytest.mark.parametrize(
    "text", [BEFORE, AFTER, "a" * 1000, "中文" * 300, "short", "-\n" * 99]
)
@pytest.mark.parametrize(
    "query", ["football injuries", "99before", "中文", "", "a" * 99]
)
def test_an_excerpt_fills_three_lines_at_most(text, query):
    lines = excerpt(text, query)
    assert 1 <= len(lines) <= 3 and max(map(len, lines)) <= 80
    if max(text) > "一":
        assert max(map(len, lines)) <= 40  # such letters have two columns


def test_an_excerpt_lies_around_the_words_of_the_question():
    text = f"{BEFORE} The injured players of Football. {AFTER}"
    shown = " ".join(excerpt(text, "football injuries?"))
    assert shown.startswith("… 9") and shown.endswith(" …")
    assert "The injured players of Football." in shown
    assert " ".join(excerpt(text, "99after")).endswith("99after")
    assert " ".join(excerpt(text, "nothing")).startswith("0before ")
    assert excerpt("", "a") == []


def test_no_text_moves_the_cursor():
    assert one_line("a\x1b[31m\r\nb\u2028\x00c") == "a [31m b c"
    hit = Hit("i\nd", 0.5, "ti\x1b[1mtle", "", "pas\rsage")
    for shown in (repr(hit), repr(Hits([hit], "q\x1b"))):
        assert "\x1b" not in shown and "\r" not in shown and "i d" in shown


def test_a_title_is_not_shown_twice():
    hit = Hit("1", 0.5, "Rivers", "", "Rivers\n\nThey carry sand.")
    assert hit.lines("sand") == ["They carry sand."]
    assert Hit("1", 0.5, "", "", "They carry sand.").name == "They carry sand."
