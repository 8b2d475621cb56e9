"""Makes any text of a user fit for plots and pages.

A class label or a title may hold control characters, line breaks, nothing at all, or a
whole paragraph.
"""

import re

# Control characters but white space (tab, line feed, form feed, carriage return), and
# halves of characters.
CONTROLS = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
REPLACED = "\N{REPLACEMENT CHARACTER}"
WIDEST = 40  # characters of the longest label
EMPTY = "(empty)"


def printable(text: str) -> str:
    """The text with REPLACED for each control character and half of a character."""
    return CONTROLS.sub(REPLACED, text)


def label(text: str) -> str:
    """The text on one line of at most WIDEST characters, or EMPTY without words.

    A longer text loses its middle, not its end: names of classes often differ only at
    the end.
    """
    line = " ".join(printable(text).split()) or EMPTY
    if len(line) <= WIDEST:
        return line
    end = WIDEST // 3
    return f"{line[: WIDEST - end - 1]}…{line[-end:]}"
