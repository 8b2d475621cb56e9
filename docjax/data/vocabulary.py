"""The words behind the ids of a tokenizer, and how often a corpus has them."""

import dataclasses
import functools
import json
import string
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int
from tokenizers import decoders

from docjax.data.corpus import Corpus
from docjax.data.tokenizer import Tokenizer

MARKS = (" ", "\u2581")  # these begin a word; byte-level tokens: after decoding
NEW = (*MARKS, *string.whitespace, *string.punctuation)  # these do not continue a word


@dataclasses.dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words by id; an id may be a piece of a word, or a special token.

    words: None where an id alone is not a whole word; continues: True where an id
    continues the word of the id before it; counts: the occurrences of each id.
    """

    words: Sequence[str | None]
    continues: Bool[np.ndarray, " w"]
    counts: Int[np.ndarray, " w"]

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
    tokenizer: Tokenizer, corpus: Corpus, documents: Int[np.ndarray, " b"] | None = None
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
