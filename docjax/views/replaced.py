"""A document and its paraphrase, word by word (DECA, section 3.3).

A class says how a word may be replaced. `fitted` looks up the replacements of all words
of a vocabulary once, so that a few array operations paraphrase a document. `fitted`
counts and tags words in the `documents` of the corpus (None: in all). Only words that
are one token of the tokenizer are replaced.
"""

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int
from numpy.random import Generator

from docjax.data import lexicons
from docjax.data.corpus import Corpus
from docjax.data.tokenizer import Tokenizer
from docjax.data.vocabulary import (
    Documents,
    Vocabulary,
    adjectives_and_verbs,
    vocabulary,
)
from docjax.errors import UserError
from docjax.types import DOCUMENT, Units
from docjax.views.ready import Ready


class WordViews:
    """Two views: the document, and the document in other words.

    Each unit is changed independently, so that one call may read several documents.
    """

    many_documents = True
    kinds = (DOCUMENT, DOCUMENT)
    least_units = 1
    halve_from: int | None = None


class Lexical(WordViews):
    """Word views that read lexicons of NLTK.

    Attributes:
      lexicons: the folder of NLTK's data; None: where NLTK looks.
    """

    lexicons: str | None
    needed: tuple[str, ...] = ("wordnet",)

    def files(self) -> tuple[Path, ...]:
        lexicons.check(self.lexicons, *self.needed)
        return ()


@dataclasses.dataclass(frozen=True, eq=False)
class Replaced(WordViews, Ready):
    """Replaces words of the document by random candidates.

    starts, candidates: word i may become `candidates[starts[i]:starts[i + 1]]`;
    probability: the chance that a word with candidates is replaced; prefix: the id to
    put before a replacement, if any.
    """

    vocabulary: Vocabulary
    starts: Int[np.ndarray, " w"]
    candidates: Int[np.ndarray, " c"]
    probability: float = 1.0
    prefix: int | None = None

    def __post_init__(self) -> None:
        _check_probability(self)

    def __call__(self, units: Units, generator: Generator) -> tuple[Units, ...]:
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
    """Each word becomes one of its synonyms in WordNet, or stays, all equally likely."""

    least_count: int = 10  # the least occurrences of a replacement in the corpus
    lexicons: str | None = None

    def fitted(
        self, tokenizer: Tokenizer, corpus: Corpus, documents: Documents = None
    ) -> Replaced:
        words = vocabulary(tokenizer, corpus, documents)
        synonyms = lexicons.WordNet(self.lexicons).synonyms
        return _replaced(words, lambda word: synonyms(word) | {word}, self.least_count)


@dataclasses.dataclass(frozen=True)
class Paraphrases(WordViews):
    """Like `WordNet`, with the word pairs of a file (PPDB)."""

    path: str | None = None
    least_count: int = 10

    def files(self) -> tuple[Path, ...]:
        if self.path is None:
            raise UserError(
                "Paraphrases needs a file of pairs: give --config.views.path"
            )
        if not Path(self.path).is_file():
            raise UserError(f"paraphrases {self.path}: no such file")
        return (Path(self.path),)

    def fitted(
        self, tokenizer: Tokenizer, corpus: Corpus, documents: Documents = None
    ) -> Replaced:
        (file,) = self.files()
        words = vocabulary(tokenizer, corpus, documents)
        pairs = lexicons.pairs(str(file))
        replacements = lambda word: pairs[word] | {word} if word in pairs else ()
        return _replaced(words, replacements, self.least_count)


@dataclasses.dataclass(frozen=True)
class Antonyms(Lexical):
    """Adjectives and verbs become "not" and one of their antonyms in WordNet.

    A word counts as adjective or verb if most of its tagged occurrences do: at most 16,
    from at most 10,000,000 words of the corpus, tagged with their neighbours.
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
                'the vocabulary has no word "not", which antonyms need: add it to '
                "the stop words to keep (keep)"
            )
        antonyms = lexicons.WordNet(self.lexicons).antonyms
        table = _replaced(words, antonyms, self.least_count)
        wanted = np.flatnonzero(np.diff(table.starts))
        tagger = lexicons.Tagger(self.lexicons)
        tagged = adjectives_and_verbs(wanted, words, corpus, documents, tagger)
        of_tagged = lambda word: antonyms(word) if word in tagged else ()
        table = _replaced(words, of_tagged, self.least_count)
        prefix = words.ids["not"]
        return dataclasses.replace(table, probability=self.probability, prefix=prefix)


@dataclasses.dataclass(frozen=True)
class Uninformative(Lexical):
    """Rare words become one of their more frequent synonyms in WordNet."""

    below: int = 10  # a word is rare if it occurs less often
    lexicons: str | None = None

    def fitted(
        self, tokenizer: Tokenizer, corpus: Corpus, documents: Documents = None
    ) -> Replaced:
        words = vocabulary(tokenizer, corpus, documents)
        synonyms = lexicons.WordNet(self.lexicons).synonyms
        rare = lambda word: words.counts[words.ids[word]] < self.below
        replacements = lambda word: synonyms(word) - {word} if rare(word) else ()
        return _replaced(words, replacements, self.below)


@dataclasses.dataclass(frozen=True)
class Dropped(WordViews, Ready):
    """Leaves out tokens at random; a unit keeps at least one."""

    probability: float = 0.3

    def __post_init__(self) -> None:
        _check_probability(self)

    def __call__(self, units: Units, generator: Generator) -> tuple[Units, ...]:
        kept = generator.random(len(units.tokens)) >= self.probability
        nonempty = units.lengths > 0
        kept[units.offsets[:-1][nonempty]] |= _sums(kept, units)[nonempty] == 0
        offsets = np.concatenate([[0], np.cumsum(_sums(kept, units))])
        tokens = units.tokens[kept]
        dropped = dataclasses.replace(
            units, tokens=tokens, offsets=offsets, vectors=None
        )
        return units, dropped


def _check_probability(views: Any) -> None:
    if not 0 <= views.probability <= 1:
        raise UserError(
            f"{type(views).__name__} has probability {views.probability}: give a "
            "number from 0 to 1"
        )


def _replaced(
    words: Vocabulary, candidates: Callable[[str], Iterable[str]], least_count: int
) -> Replaced:
    """The table of all words and their candidates, which are words of the vocabulary.

    Candidates that occur less than `least_count` times are left out, but never the word
    itself.
    """
    table, starts = [], [0]
    for i, word in enumerate(words.words):
        if word is not None and word.isalpha():
            ids = {words.ids[name] for name in candidates(word) if name in words.ids}
            ids = {j for j in ids if j == i or words.counts[j] >= least_count}
            table += sorted(ids)
        starts.append(len(table))
    itself = np.repeat(np.arange(len(words.words)), np.diff(starts))
    if np.array_equal(table, itself):  # no word has another candidate
        raise UserError(
            "no word of the vocabulary has a replacement in it that occurs "
            f"{least_count} times: give English texts, or lower that number "
            "(least_count, below)"
        )
    return Replaced(words, np.array(starts), np.array(table, np.int32))


def _with_prefix(
    units: Units, tokens: np.ndarray, changed: np.ndarray, prefix: int
) -> Units:
    """`tokens` with `prefix` before each token that is `changed`."""
    longer = np.repeat(tokens, 1 + changed)
    ends = np.cumsum(1 + changed)
    longer[ends[changed] - 2] = prefix
    lengths = units.lengths + _sums(changed, units)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return dataclasses.replace(units, tokens=longer, offsets=offsets, vectors=None)


def _sums(values: Bool[np.ndarray, " n"], units: Units) -> np.ndarray:
    """The number of True values in each unit."""
    totals = np.concatenate([[0], np.cumsum(values)])
    return np.diff(totals[units.offsets])
