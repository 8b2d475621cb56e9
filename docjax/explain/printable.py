"""Makes any text of a user fit for plots and pages.

A class label or a title may hold control characters, line breaks, nothing at all, or a
whole paragraph.
"""

KEPT = "\t\n\f\r"  # control characters that are white space
REPLACED = "\N{REPLACEMENT CHARACTER}"
CONTROLS = {
    code: REPLACED
    for codes in (range(0x20), range(0x7F, 0xA0), range(0xD800, 0xE000))
    for code in codes
    if chr(code) not in KEPT
}
WIDEST = 40  # characters of the longest label
EMPTY = "(empty)"


def printable(text: str) -> str:
    """The text with REPLACED for each control character and half of a character."""
    return text.translate(CONTROLS)


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
