"""The words behind the ids of a tokenizer: how often a corpus has them, and as what."""

import dataclasses
import functools
import json
import string
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int
from tokenizers import decoders

from docjax.data.corpus import Corpus
from docjax.data.lexicons import Tagger
from docjax.data.tokenizer import Tokenizer
from docjax.types import Units

MARKS = (" ", "\u2581")  # these begin a word; byte-level tokens: after decoding
NEW = (*MARKS, *string.whitespace, *string.punctuation)  # these do not continue a word
OCCURRENCES = 16  # of a word, the most to tag
READ = 10_000_000  # words to search for these occurrences
BEFORE, AFTER = 4, 2  # words that the tagger reads around a word
Documents = Int[np.ndarray, " b"] | None  # numbers in the corpus; None for all


@dataclasses.dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words by id; an id may be a piece of a word, or a special token."""

    words: Sequence[str | None]  # None where an id alone is not a whole word
    continues: Bool[np.ndarray, " w"]  # the id continues the word of the id before it
    counts: Int[np.ndarray, " w"]  # the occurrences of each id

    @functools.cached_property
    def ids(self) -> dict[str, int]:
        """The id of each word."""
        return {word: i for i, word in enumerate(self.words) if word is not None}

    def whole(self, tokens: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        """True where a token is a word and the next token does not continue it."""
        whole = self._is_word[tokens]
        whole[:-1] &= ~self.continues[tokens[1:]]
        return whole

    @functools.cached_property
    def _is_word(self) -> Bool[np.ndarray, " w"]:
        return np.array([word is not None for word in self.words])


def vocabulary(
    tokenizer: Tokenizer, corpus: Corpus, documents: Documents = None
) -> Vocabulary:
    """The words of a tokenizer, counted in `documents` of a corpus (None: in all)."""
    words: list[str | None] = [None] * tokenizer.vocabulary
    continues = np.zeros(tokenizer.vocabulary, bool)
    model = json.loads(tokenizer.backend.to_str())["model"]
    special = tokenizer.backend.get_added_tokens_decoder()
    prefix = model.get("continuing_subword_prefix") or ""
    marked, decode = model["type"] in ("BPE", "Unigram"), decoders.ByteLevel().decode
    for token, i in tokenizer.backend.get_vocab(with_added_tokens=True).items():
        if i in special:
            continue
        if marked:  # byte-level and word tokens: words begin with a mark
            text = decode([token])
            continues[i] = not text.startswith(NEW)
            words[i] = text[1:] or None if text.startswith(MARKS) else None
        else:
            continues[i] = bool(prefix) and token.startswith(prefix)
            words[i] = None if continues[i] else token
    counts = corpus.word_counts(tokenizer.vocabulary, documents)
    return Vocabulary(words, continues, counts)


def adjectives_and_verbs(
    wanted: Int[np.ndarray, " n"],
    words: Vocabulary,
    corpus: Corpus,
    documents: Documents,
    tagger: Tagger,
) -> set[str]:
    """The words tagged adjective or verb in most of up to OCCURRENCES occurrences.

    `wanted` are the ids of the words to look at. Only evenly spread `documents` with
    about READ words are read: large corpora cost the same.
    """
    documents = np.arange(len(corpus)) if documents is None else documents
    every = -(-int(corpus.sizes(documents).sum()) // READ)
    sample = corpus.concatenated(documents[::every])
    order = np.argsort(sample.tokens, kind="stable")
    first = np.searchsorted(sample.tokens, wanted, sorter=order)
    after = np.searchsorted(sample.tokens, wanted, side="right", sorter=order)
    tagged = set()
    for word, start, end in zip(wanted, first, after, strict=True):
        places = order[
            np.linspace(start, end - 1, min(OCCURRENCES, end - start), dtype=int)
        ]
        votes = [_tagged(int(place), sample, words, tagger) for place in places]
        if sum(votes) * 2 > len(votes):
            tagged.add(words.words[word])
    return tagged


def _tagged(place: int, units: Units, words: Vocabulary, tagger: Tagger) -> bool:
    """Whether the word at `place` is an adjective or a verb, judged within its unit."""
    number = np.searchsorted(units.offsets, place, side="right")
    start = max(place - BEFORE, int(units.offsets[number - 1]))
    end = min(place + AFTER + 1, int(units.offsets[number]))
    around = [words.words[i] or "." for i in units.tokens[start:end]]
    return tagger.is_adjective_or_verb(around)[place - start]
