"""A tokenizer whose tokens are the words of a corpus.

A regular expression finds the words of a text in small letters, after HTML line breaks
become spaces. Words outside the vocabulary are dropped, so that a document is the list
of its known words.
"""

import functools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from docjax.data.lexicons import stop_words as read_stop_words
from docjax.data.tokenizer import Tokenizer
from docjax.errors import UserError

FEW = 500  # with fewer documents a word of a single one may matter
PAD = "<pad>"  # id 0; no text has it
BREAK = "<br />"
# What \s matches in a tokenizer; in Python's re it matches control characters too.
SPACES = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
MARK = "\u2581"  # before every word: a letter without it is not a word

CLEANINGS = {
    # Letters, digits and ( ) , ! ? ' `, contractions split: as in TextGCN (MR,
    # Ohsumed, 20 Newsgroups).
    "letters": r"[,!?()]|[a-z0-9'`](?:(?!n't|'(?:s|ve|re|d|ll))[a-z0-9'`])*",
    # Letters only: as TextGCN and DECA read R8 and R52.
    "alphabet": r"[a-z]+",
    # Everything between white space and ; where . " , ( ) ! ? : are words (IMDB).
    "reviews": r"""[.",()!?:]|[^\s.",()!?:;]+""",
}


def train_words(
    texts: Iterable[str],
    *,
    cleaning: str = "letters",
    least_count: int | None = 5,
    stop_words: bool = True,
    keep: Collection[str] = ("not",),
    lexicons: str | None = None,
) -> Tokenizer:
    """A tokenizer of all words that occur `least_count` times, frequent words first.

    Args:
      least_count: None: 2, and 1 of fewer than FEW texts.
      cleaning: what a word is, one of CLEANINGS.
      stop_words: True drops NLTK's stop words except those in `keep` (DECA's antonyms
        need "not"); False keeps all.

    Raises:
      UserError: if fewer than 2 words are left.
    """
    if cleaning not in CLEANINGS:
        raise UserError(f"cleaning {cleaning!r} is not one of {', '.join(CLEANINGS)}")
    dropped = read_stop_words(lexicons) if stop_words else frozenset()
    counts: Counter[str] = Counter()
    number = 0
    for number, text in enumerate(texts, start=1):
        counts.update(split(text, cleaning))
    if least_count is None:
        least_count = 2 if number >= FEW else 1
    words = [
        word
        for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if count >= least_count and (word not in dropped or word in keep)
    ]
    if len(words) < 2:
        raise UserError(
            f"the vocabulary has {len(words)} words, of {len(counts):,} that occur: it "
            f"needs 2 or more; lower least_count ({least_count}) or give more texts"
        )
    return word_tokenizer(words, CLEANINGS[cleaning])


def split(text: str, cleaning: str = "letters") -> list[str]:
    """The words of a text as `word_tokenizer` splits it, in a quarter of the time."""
    # Only Python has another small sigma for the end of a word.
    return _find(cleaning)(text.replace(BREAK, " ").replace("Σ", "σ").lower())


@functools.cache
def _find(cleaning: str) -> Callable[[str], list[str]]:
    return re.compile(CLEANINGS[cleaning].replace(r"\s", SPACES)).findall


def word_tokenizer(words: Iterable[str], pattern: str) -> Tokenizer:
    """The tokenizer of these words, with ids from 1."""
    # A BPE model without merges and without an unknown token drops unknown words; a
    # model of whole words (WordLevel) would raise an error.
    ids = {PAD: 0} | {MARK + word: i for i, word in enumerate(words, 1)}
    backend = tokenizers.Tokenizer(models.BPE(ids, [], ignore_merges=True))
    backend.normalizer = normalizers.Sequence(
        [normalizers.Replace(BREAK, " "), normalizers.Lowercase()]
    )
    known = pre_tokenizers.Split(tokenizers.Regex(pattern), "removed", invert=True)
    marked = pre_tokenizers.Metaspace(MARK, prepend_scheme="always", split=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([known, marked])
    backend.decoder = decoders.Metaspace(MARK, prepend_scheme="always", split=False)
    return Tokenizer(backend)
