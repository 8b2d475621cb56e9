"""The words behind the ids of a tokenizer, and how often a corpus has them."""

import dataclasses
import functools
import json
import string
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int
from tokenizers import decoders

from docjax.data.tokenizer import Tokenizer

MARKS = (" ", "\u2581")  # how tokens say that a word begins; byte-level ones, decoded
NEW = (*MARKS, *string.whitespace, *string.punctuation)  # these go on no word


@dataclasses.dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words by id; an id may be a piece of a word, or a special token.

    words: None where an id is no whole word by itself; continues: where it goes on a
    word that the id before it began; counts: occurrences.
    """

    words: Sequence[str | None]
    continues: Bool[np.ndarray, " w"]
    counts: Int[np.ndarray, " w"]

    @functools.cached_property
    def ids(self) -> dict[str, int]:
        """The id of each word."""
        return {word: i for i, word in enumerate(self.words) if word is not None}

    def whole(self, tokens: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        """Where a token is a whole word: one, and the next does not continue it."""
        whole = self._is_word[tokens]
        whole[:-1] &= ~self.continues[tokens[1:]]
        return whole

    @functools.cached_property
    def _is_word(self) -> Bool[np.ndarray, " w"]:
        return np.array([word is not None for word in self.words])


@runtime_checkable
class Counts(Protocol):
    """A corpus that counts words, as `docjax.data.corpus.Corpus` does."""

    def word_counts(
        self, vocabulary: int, documents: Int[np.ndarray, " b"] | None
    ) -> Int[np.ndarray, " w"]: ...


def vocabulary(
    tokenizer: Tokenizer,
    corpus: Counts,
    documents: Int[np.ndarray, " b"] | None = None,
) -> Vocabulary:
    """The words of a tokenizer, counted in some documents of a corpus, or all."""
    words: list[str | None] = [None] * tokenizer.vocabulary
    continues = np.zeros(tokenizer.vocabulary, bool)
    model = json.loads(tokenizer.backend.to_str())["model"]
    special = tokenizer.backend.get_added_tokens_decoder()
    prefix = model.get("continuing_subword_prefix") or ""
    marked, decode = model["type"] in ("BPE", "Unigram"), decoders.ByteLevel().decode
    for token, i in tokenizer.backend.get_vocab(with_added_tokens=True).items():
        if i in special:
            continue
        if marked:  # of byte-level and word tokens, those that begin with a mark
            text = decode([token])
            continues[i] = not text.startswith(NEW)
            words[i] = text[1:] or None if text.startswith(MARKS) else None
        else:
            continues[i] = bool(prefix) and token.startswith(prefix)
            words[i] = None if continues[i] else token
    counts = corpus.word_counts(tokenizer.vocabulary, documents)
    return Vocabulary(words, continues, counts)
