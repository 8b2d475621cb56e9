"""Cuts texts into sentences, by rules.

This file needs only Python: `docjax export` copies it into the folders that it writes.
"""

import re

# Words whose full stop never ends a sentence.
TITLES = frozenset(
    "mr mrs ms mx dr prof rev fr st hon gen col maj capt cmdr lt sgt cpl gov sen rep "
    "pres messrs mmes mt ft v vs cf viz eg ie e.g i.e fig figs eq eqs eqn sect vol vols "
    "ch chap approx dept univ".split()
)
# Words whose full stop ends a sentence only before a capital letter.
ABBREVIATIONS = frozenset(
    "al etc inc ltd co corp bros jr sr esq no nos p pp ref refs ca ed eds ave blvd rd "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs "
    "fri sat sun am pm min max hr hrs sec est ver".split()
)
# Words that begin a sentence even after an initial or an acronym ("the U.S. He").
STARTERS = frozenset(
    "A After All Also Although An And As At Because Before But By During Each For From "
    "He Her Here His How However I If In It Its Later Many More Most My No Not Now On "
    "One Or Our She Since So Some Such Than That The Their Then There These They This "
    "Those Thus To Under Until We What When Where Which While Who Why With You".split()
)

BLANK_LINE = re.compile(r"\n\s*\n")
# A sentence may end at a mark (with its closing quotes and brackets) before a space,
# at a mark of East Asian scripts, or before a line of a list.
END = re.compile(
    r"""(?<![.!?…])[.!?…]++["'”’»)\]]*+(?=\s)"""
    r"""|[。！？]++["'”’」』）]*+"""
    r"""|\n(?=[ \t]*(?:[-*•‣▪–]|\d{1,2}[.)]|\([a-zA-Z\d]{1,2}\)|[a-zA-Z]\))[ \t])"""
)
OPENING = "\"'“‘«([{<*_`~–—•¿¡-"
NEXT_WORD = re.compile(r"[\s\"'“‘«*_`~–—•¿¡-]*+(\w*\.?)")
LIST_NUMBER = re.compile(r"\(?(?:(?:\d{1,3}\.)*\d{1,3}|[a-zA-Z]|[ivxIVX]{2,5})$")
DOTTED = re.compile(r"(?:[^\W\d_]\.-?)+[^\W\d_]$")
LOOK_BACK = 64  # characters: a longer word is not an abbreviation


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order; only white space is lost.

    Blank lines and lines of a list always end a sentence. A full stop does not end one
    in titles, abbreviations, initials, decimals, addresses and list numbers, nor before
    a small letter (unless the text has no capitals at all).
    """
    pieces = []
    for paragraph in BLANK_LINE.split(text):
        start, caseless = 0, paragraph.islower()
        for match in END.finditer(paragraph):
            if _ends_sentence(paragraph, start, match, caseless):
                pieces.append(paragraph[start : match.end()].strip())
                start = match.end()
        pieces.append(paragraph[start:].strip())
    return [sentence for sentence in pieces if sentence]


def _ends_sentence(text: str, start: int, match: re.Match, caseless: bool) -> bool:
    """Whether the sentence that began at `start` ends with the mark in `match`."""
    mark = match.group()
    if mark[0] in "\n。！？":
        return True
    head = text[max(start, match.start() - LOOK_BACK) : match.start()]
    if not head or head[-1].isspace():
        return True  # the mark stands alone, as in tokenised corpora
    following = NEXT_WORD.match(text, match.end()).group(1)
    if following[:1].islower() and not caseless:
        return mark[0] in "!?" and mark[-1] in "!?"
    if mark.startswith(("..", "!", "?", "…")):
        return True
    return not _is_abbreviation(head, following, match.start() - start, caseless)


def _is_abbreviation(head: str, following: str, length: int, caseless: bool) -> bool:
    """Whether the full stop after `head` belongs to a number or an abbreviation."""
    word = head.rsplit(None, 1)[-1]
    first = length <= LOOK_BACK and len(head.strip()) == len(word)
    if first and LIST_NUMBER.match(word):
        return True
    word = word.lstrip(OPENING)
    initial = len(word) == 1 and word.isupper() or DOTTED.match(word)
    if initial and word.lower() not in TITLES:
        return not caseless and following not in STARTERS
    if word.lower() in ABBREVIATIONS:
        return not following[:1].isupper()
    return word.lower() in TITLES
