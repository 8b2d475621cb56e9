"""Lexicons: WordNet, paraphrase pairs, stop words, parts of speech.

NLTK reads WordNet, stop words and tagger from its data folders, or from a folder with
the same layout. Nothing is downloaded here. Only the functions that need NLTK import
it: the import takes seconds, because NLTK imports scipy and scikit-learn.
"""

import functools
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from docjax.data.documents import decode
from docjax.data.sources.lines import open_lines
from docjax.errors import UserError

TAGGER = "averaged_perceptron_tagger_eng"
# NLTK's downloader leaves some as .zip; the final slash finds folders in these.
RESOURCES = {
    "stopwords": "corpora/stopwords/english",
    "wordnet": "corpora/wordnet/",
    TAGGER: f"taggers/{TAGGER}/",
}
ADJECTIVES_AND_VERBS = ("JJ", "VB")  # the first letters of Penn Treebank tags


def check(folder: str | None, *names: str) -> None:
    """Raises UserError if one of these RESOURCES is missing."""
    for name in names:
        _read(name, folder, lambda path: path)


def stop_words(folder: str | None = None) -> frozenset[str]:
    """NLTK's 179 English stop words."""

    def read(path: Any) -> frozenset[str]:
        with path.open("utf-8") as file:
            return frozenset(file.read().split())

    return _read("stopwords", folder, read)


class WordNet:
    """Synonyms and antonyms of English words: single words, in lower case."""

    def __init__(self, folder: str | None = None):
        self._reader = _wordnet(folder)

    def synonyms(self, word: str) -> set[str]:
        """The lemmas of all synsets of a word; an inflected word has the lemmas of its
        base form."""
        synsets = self._reader.synsets(word)
        return _single(name for synset in synsets for name in synset.lemma_names())

    def antonyms(self, word: str) -> set[str]:
        """The antonyms of a word, read as an adjective or a verb."""
        return _single(
            antonym.name()
            for synset in self._reader.synsets(word)
            if synset.pos() in "asv"
            for lemma in synset.lemmas()
            if lemma.name().lower() in (word, self.lemma(word, synset.pos()))
            for antonym in lemma.antonyms()
        )

    def lemma(self, word: str, part: str) -> str:
        """The base form of a word that is a noun ("n"), a verb ("v") or an adjective
        ("a", "s"); the word itself if WordNet has none."""
        return self._reader.morphy(word, "a" if part == "s" else part) or word


class Tagger:
    """Parts of speech, by NLTK's averaged perceptron."""

    def __init__(self, folder: str | None = None):
        from nltk.tag import PerceptronTagger

        self._tagger = PerceptronTagger(load=False)
        _read(TAGGER, folder, lambda path: self._tagger.load_from_json(loc=path))

    def is_adjective_or_verb(self, words: Sequence[str]) -> list[bool]:
        """For each word of a text, whether it is an adjective or a verb."""
        return [tag.startswith(ADJECTIVES_AND_VERBS) for tag in self.tags(words)]

    def tags(self, words: Sequence[str]) -> list[str]:
        """The Penn Treebank tag of each word of a text."""
        return [tag for _, tag in self._tagger.tag(list(words))]


def pairs(path: str) -> dict[str, set[str]]:
    """Each word's paraphrases, from a file of pairs, in both directions.

    A line is `word<TAB>word`, or `... ||| phrase ||| paraphrase ||| ...` as in PPDB.
    Phrases of several words are left out. The file may be `.gz`, `.xz` or `.zst`.
    """
    paraphrases: dict[str, set[str]] = {}
    for number, line in enumerate(open_lines(Path(path)), start=1):
        place = f"{path}, line {number}"
        pair = _pair(decode(line, place), place)
        if all(len(word.split()) == 1 for word in pair):
            for word, paraphrase in (pair, pair[::-1]):
                paraphrases.setdefault(word, set()).add(paraphrase)
    if not paraphrases:
        raise UserError(f"paraphrases {path}: no pair of single words; add one")
    return paraphrases


def _pair(line: str, place: str) -> tuple[str, str]:
    fields = line.split("|||")[1:3] if "|||" in line else line.split("\t")
    words = [field.strip(" \r\n").lower() for field in fields]
    if len(words) != 2 or not all(words):
        raise UserError(f"{place}: not a pair `word<TAB>word`: {line.strip()[:60]!r}")
    return words[0], words[1]


def _single(names: Iterable[str]) -> set[str]:
    return {name.lower() for name in names if "_" not in name}


@functools.cache
def _wordnet(folder: str | None) -> Any:
    """NLTK's reader of WordNet, which takes seconds to start."""
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    with warnings.catch_warnings():  # about other languages, which are not read
        warnings.simplefilter("ignore", UserWarning)
        return _read("wordnet", folder, lambda path: WordNetCorpusReader(path, None))


def _read(name: str, folder: str | None, read: Callable[[Any], Any]) -> Any:
    """The result of `read` for the path where NLTK finds the resource `name`.

    If `folder` is given, NLTK searches only `folder`.
    """
    import nltk

    if folder is not None:
        folder = str(Path(folder).absolute())  # NLTK's tagger needs this
        if folder not in nltk.data.path:
            nltk.data.path.insert(0, folder)  # NLTK reads only from here
    resource = RESOURCES[name]
    try:
        return read(nltk.data.find(resource, [folder] if folder else None))
    except (LookupError, OSError, ValueError, BadZipFile):
        where = folder or ", ".join(nltk.data.path)
        raise UserError(
            f"NLTK's {name} is not in {where}, or damaged: get it with `python -m "
            f"nltk.downloader {name}`, or name the folder that holds {resource}"
        ) from None
