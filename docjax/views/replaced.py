"""A document and a paraphrase of it, word by word (DECA, section 3.3).

A class says how a word may be replaced; `fitted` looks that up for all words of a
vocabulary, once, so that a document is paraphrased by a few array operations, and counts
and tags words in those documents of the corpus that training reads (all without them).
Words are whole words of the tokenizer: with word pieces, those that are one piece.
"""

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from docjax.data import lexicons
from docjax.data.corpus import Corpus
from docjax.data.tagging import adjectives_and_verbs
from docjax.data.tokenizer import Tokenizer
from docjax.data.vocabulary import Vocabulary, vocabulary
from docjax.errors import UserError
from docjax.types import DOCUMENT, Units
from docjax.views.ready import Ready

Documents = Int[np.ndarray, " b"] | None  # numbers in the corpus; None for all


class WordViews:
    """Two views: the document, and the same in other words.

    Each unit is changed by itself, so that several documents may come in one piece.
    """

    many_documents = True
    kinds = (DOCUMENT, DOCUMENT)
    least_units = 1


class Lexical(WordViews):
    """Word views from a lexicon of NLTK.

    Attributes:
      lexicons: the folder of NLTK's data, if not where NLTK looks.
    """

    lexicons: str | None
    needed: tuple[str, ...] = ("wordnet",)

    def files(self) -> tuple[Path, ...]:
        """No file of the user's. Raises UserError if a lexicon is missing."""
        lexicons.check(self.lexicons, *self.needed)
        return ()


@dataclasses.dataclass(frozen=True, eq=False)
class Replaced(WordViews, Ready):
    """Words are drawn for some of the document's words.

    starts, candidates: word i may become `candidates[starts[i]:starts[i + 1]]`;
    probability: of a word that has candidates to be drawn anew; prefix: the id that
    goes before a replacement, if any.
    """

    vocabulary: Vocabulary
    starts: Int[np.ndarray, " w"]
    candidates: Int[np.ndarray, " c"]
    probability: float = 1.0
    prefix: int | None = None

    def __post_init__(self) -> None:
        _check_probability(self)

    def __call__(
        self, units: Units, generator: np.random.Generator
    ) -> tuple[Units, ...]:
        tokens = units.tokens
        if not len(tokens):
            return units, units
        choices = np.diff(self.starts)[tokens] * self.vocabulary.whole(tokens)
        drawn = np.floor(generator.random(len(tokens)) * choices).astype(np.int64)
        changed = choices > 0
        if self.probability < 1:
            changed &= generator.random(len(tokens)) < self.probability
        where = np.where(changed, self.starts[tokens] + drawn, 0)
        replaced = np.where(changed, self.candidates[where], tokens).astype(np.int32)
        if self.prefix is not None:
            return units, _with_prefix(units, replaced, changed, self.prefix)
        return units, dataclasses.replace(units, tokens=replaced, vectors=None)


@dataclasses.dataclass(frozen=True)
class WordNet(Lexical):
    """Each word becomes one of its synonyms in WordNet, or stays, all equally likely.

    least_count: occurrences of a replacement in the corpus; lexicons: the folder of
    NLTK's data, if not where NLTK looks.
    """

    least_count: int = 10
    lexicons: str | None = None

    def fitted(
        self, tokenizer: Tokenizer, corpus: Corpus, documents: Documents = None
    ) -> Replaced:
        words = vocabulary(tokenizer, corpus, documents)
        found = lexicons.WordNet(self.lexicons).synonyms
        return _replaced(words, lambda word: found(word) | {word}, self.least_count)


@dataclasses.dataclass(frozen=True)
class Paraphrases(WordViews):
    """As WordNet, with the pairs in a file (PPDB)."""

    path: str | None = None
    least_count: int = 10

    def files(self) -> tuple[Path, ...]:
        """The file of pairs. Raises UserError if it is missing."""
        if self.path is None:
            raise UserError("Paraphrases needs a file of pairs: --config.views.path")
        if not Path(self.path).is_file():
            raise UserError(f"paraphrases {self.path}: no such file")
        return (Path(self.path),)

    def fitted(
        self, tokenizer: Tokenizer, corpus: Corpus, documents: Documents = None
    ) -> Replaced:
        (file,) = self.files()
        words, pairs = (
            vocabulary(tokenizer, corpus, documents),
            lexicons.pairs(str(file)),
        )
        found = lambda word: pairs[word] | {word} if word in pairs else ()
        return _replaced(words, found, self.least_count)


@dataclasses.dataclass(frozen=True)
class Antonyms(Lexical):
    """Adjectives and verbs become "not" and an antonym of theirs in WordNet.

    A word counts as adjective or verb if most of its occurrences do: of at most 16,
    from at most 10,000,000 words of the corpus, tagged among their neighbours.
    """

    needed = ("wordnet", lexicons.TAGGER)
    probability: float = 0.5
    least_count: int = 1
    lexicons: str | None = None

    def __post_init__(self) -> None:
        _check_probability(self)

    def fitted(
        self, tokenizer: Tokenizer, corpus: Corpus, documents: Documents = None
    ) -> Replaced:
        words = vocabulary(tokenizer, corpus, documents)
        if "not" not in words.ids:
            raise UserError(
                'the vocabulary has no word "not", which antonyms need: leave it among '
                "the stop words that are kept (keep)"
            )
        found = lexicons.WordNet(self.lexicons).antonyms
        table = _replaced(words, found, self.least_count)
        wanted = np.flatnonzero(np.diff(table.starts))
        tagger = lexicons.Tagger(self.lexicons)
        tagged = adjectives_and_verbs(wanted, words, corpus, documents, tagger)
        return dataclasses.replace(
            _replaced(
                words,
                lambda word: found(word) if word in tagged else (),
                self.least_count,
            ),
            probability=self.probability,
            prefix=words.ids["not"],
        )


@dataclasses.dataclass(frozen=True)
class Uninformative(Lexical):
    """Rare words become more frequent synonyms of theirs in WordNet.

    below: a word is rare that occurs less often.
    """

    below: int = 10
    lexicons: str | None = None

    def fitted(
        self, tokenizer: Tokenizer, corpus: Corpus, documents: Documents = None
    ) -> Replaced:
        words = vocabulary(tokenizer, corpus, documents)
        synonyms = lexicons.WordNet(self.lexicons).synonyms
        rare = lambda word: words.counts[words.ids[word]] < self.below
        found = lambda word: synonyms(word) - {word} if rare(word) else ()
        return _replaced(words, found, self.below)


@dataclasses.dataclass(frozen=True)
class Dropped(WordViews, Ready):
    """Tokens are left out at random; a unit keeps one at least."""

    probability: float = 0.3

    def __post_init__(self) -> None:
        _check_probability(self)

    def __call__(
        self, units: Units, generator: np.random.Generator
    ) -> tuple[Units, ...]:
        kept = generator.random(len(units.tokens)) >= self.probability
        lengths = units.lengths
        some = lengths > 0
        kept[units.offsets[:-1][some]] |= _sums(kept, units)[some] == 0
        dropped = dataclasses.replace(
            units,
            tokens=units.tokens[kept],
            offsets=np.concatenate([[0], np.cumsum(_sums(kept, units))]),
            vectors=None,
        )
        return units, dropped


def _check_probability(views: Any) -> None:
    if not 0 <= views.probability <= 1:
        raise UserError(
            f"{type(views).__name__} has probability {views.probability}: give one from "
            "0 to 1"
        )


def _replaced(
    words: Vocabulary, candidates: Callable[[str], Iterable[str]], least_count: int
) -> Replaced:
    """The table of all words; candidates are words of the vocabulary.

    Those that occur less than `least_count` times are left out, the word itself never.
    """
    table, starts = [], [0]
    for i, word in enumerate(words.words):
        if word is not None and word.isalpha():
            found = {words.ids[one] for one in candidates(word) if one in words.ids}
            found = {j for j in found if j == i or words.counts[j] >= least_count}
            table += sorted(found)
        starts.append(len(table))
    itself = np.repeat(np.arange(len(words.words)), np.diff(starts))
    if np.array_equal(table, itself):  # empty, or no word has another
        count = (
            f" that occurs {least_count} times: lower that number (least_count, below)"
            if least_count > 1
            else ""
        )
        raise UserError(
            f"no word of the vocabulary has a replacement in it{count}; all kinds are "
            "for English"
        )
    return Replaced(words, np.array(starts), np.array(table, np.int32))


def _with_prefix(
    units: Units, tokens: np.ndarray, changed: np.ndarray, prefix: int
) -> Units:
    """`tokens` with `prefix` before each of those that are `changed`."""
    longer = np.repeat(tokens, 1 + changed)
    ends = np.cumsum(1 + changed)
    longer[ends[changed] - 2] = prefix
    lengths = units.lengths + _sums(changed, units)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return dataclasses.replace(units, tokens=longer, offsets=offsets, vectors=None)


def _sums(values: Bool[np.ndarray, " n"], units: Units) -> np.ndarray:
    """How many are true in each unit."""
    totals = np.concatenate([[0], np.cumsum(values)])
    return np.diff(totals[units.offsets])
