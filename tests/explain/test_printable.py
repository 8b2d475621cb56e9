"""Any text of a user as one that plots and pages can show."""

import pytest

from docjax.explain.printable import EMPTY, WIDEST, label, printable

MARK = "\N{REPLACEMENT CHARACTER}"


def test_control_characters_and_halves_of_characters_are_marked():
    assert printable("a\0b\x7f\x85\udfff") == f"a{MARK}b{MARK * 3}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\tb\r\nc",
        "שלום",
        "漢字 👍🏽",
        "<b>$x$</b> _y",
        "e\N{COMBINING ACUTE ACCENT}",
    ],
)
def test_all_other_text_stays_as_it_is(text):
    assert printable(text) == text


def test_a_label_is_one_line():
    assert label(" two\n\nlines\tof  text ") == "two lines of text"


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\N{NO-BREAK SPACE}"])
def test_a_label_without_words_is_said_to_be_empty(text):
    assert label(text) == EMPTY


def test_a_long_label_keeps_both_its_ends():
    assert label("x" * WIDEST) == "x" * WIDEST
    shortened = label("start " + "middle " * 1000 + "end")
    assert len(shortened) == WIDEST
    assert shortened.startswith("start middle") and shortened.endswith("middle end")
