"""Text of documents as plots and pages can show it: any text is only text.

A class label or a title is whatever the user's file says: control characters, line
breaks, nothing at all, or a whole paragraph.
"""

KEPT = "\t\n\f\r"  # the control characters that are white space
REPLACED = "\N{REPLACEMENT CHARACTER}"
CONTROLS = {
    code: REPLACED
    for codes in (range(0x20), range(0x7F, 0xA0), range(0xD800, 0xE000))
    for code in codes
    if chr(code) not in KEPT
}
WIDEST = 40  # characters of a label
EMPTY = "(empty)"


def printable(text: str) -> str:
    """The text with a mark for each control character and each half of a character."""
    return text.translate(CONTROLS)


def label(text: str) -> str:
    """The text on one line of at most WIDEST characters; a longer text loses its middle.

    The end stays because the names of classes often differ only there. A text without
    words becomes EMPTY.
    """
    line = " ".join(printable(text).split()) or EMPTY
    if len(line) <= WIDEST:
        return line
    end = WIDEST // 3
    return f"{line[: WIDEST - end - 1]}…{line[-end:]}"
