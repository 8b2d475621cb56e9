"""The words of a text with their part of speech and lemma."""

import functools
import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from docjax.data.lexicons import Tagger, WordNet
from docjax.data.sentences import sentences

Kind = Literal["noun", "verb", "adjective", "other"]
KINDS: tuple[Kind, ...] = ("noun", "verb", "adjective", "other")


class Word(NamedTuple):
    """A word at `text[start:end]`; the lemma is in small letters."""

    start: int
    end: int
    kind: Kind
    lemma: str


TagWords = Callable[[str], Sequence[Word]]  # the words of a text, without punctuation

# As the Penn Treebank cuts words: "isn't" is "is" and "n't", "it's" is "it" and "'s".
TOKEN = re.compile(
    r"\w+?(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|\w+(?:[-.,@/]\w+)*|[^\w\s]",
    re.IGNORECASE,
)
# Tag -> kind, and WordNet's letter for it. Proper names (NNP) and modal verbs (MD) are
# "other": spaCy, the papers' tagger, has kinds of their own for them.
TAGS: dict[str, tuple[Kind, str]] = {
    "NN": ("noun", "n"),
    "NNS": ("noun", "n"),
    "JJ": ("adjective", "a"),
    "JJR": ("adjective", "a"),
    "JJS": ("adjective", "a"),
} | {f"VB{ending}": ("verb", "v") for ending in ("", "D", "G", "N", "P", "Z")}
BROAD: dict[str, tuple[Kind, str]] = TAGS | {
    "NNP": ("noun", "n"),
    "NNPS": ("noun", "n"),
    "MD": ("verb", "v"),
}
ALWAYS_AUXILIARY = frozenset(("be",))
AUXILIARY = frozenset(("have", "do"))  # before another verb
BETWEEN = ("RB", "PRP", "NN", "DT")  # what may stand before that verb
NEAR = 3  # words
LEMMAS = 1 << 16  # remembered


class Nltk:
    """Parts of speech by NLTK's averaged perceptron, lemmas by WordNet.

    broad: proper names are nouns, and auxiliary and modal verbs are verbs.
    """

    def __init__(self, folder: str | None = None, broad: bool = False):
        self._broad = broad
        self._tagger = Tagger(folder)
        self._lemma = functools.lru_cache(LEMMAS)(WordNet(folder).lemma)

    def __call__(self, text: str) -> list[Word]:
        words, start = [], 0
        for sentence in sentences(text):
            start = text.index(sentence, start)
            words += self._sentence(sentence, start)
            start += len(sentence)
        return words

    def _sentence(self, sentence: str, start: int) -> list[Word]:
        spans = [match.span() for match in TOKEN.finditer(sentence)]
        tags = self._tagger.tags([sentence[a:b] for a, b in spans])
        words, kinds = [], BROAD if self._broad else TAGS
        for number, ((a, b), tag) in enumerate(zip(spans, tags, strict=True)):
            text = sentence[a:b].lower()
            if not any(map(str.isalnum, text)):
                continue
            kind, letter = kinds.get(tag, ("other", ""))
            lemma = self._lemma(text, letter) if letter else text
            auxiliary = kind == "verb" and _is_auxiliary(lemma, tags[number + 1 :])
            if auxiliary and not self._broad:
                kind = "other"
            words.append(Word(start + a, start + b, kind, lemma))
        return words


nltk = functools.cache(Nltk)  # reading a folder takes seconds


def _is_auxiliary(lemma: str, following: Sequence[str]) -> bool:
    """Whether a form of be, have or do helps another verb."""
    if lemma not in AUXILIARY:
        return lemma in ALWAYS_AUXILIARY
    for tag in following[:NEAR]:
        if tag.startswith("VB"):
            return True
        if not tag.startswith(BETWEEN):
            break
    return False
