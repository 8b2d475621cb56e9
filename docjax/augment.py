"""A text under each of the word-level paraphrases, to be looked at side by side."""

import re
import tempfile
from collections.abc import Collection
from pathlib import Path

import numpy as np

from docjax.config import UserError
from docjax.data import lexicons as lexicons_lib
from docjax.data import segments, tokens
from docjax.data.tokens import Corpus, Tokenizer
from docjax.data.words import CLEANINGS, word_tokenizer
from docjax.types import Document, Section, Segments
from docjax.views import words as views

LETTERS = CLEANINGS["letters"]
LIMIT = 1 << 16  # words


def augmented(
    text: str,
    *,
    run: Path | None = None,
    lexicons: str | None = None,
    paraphrases: str | None = None,
    seed: int = 0,
) -> dict[str, str]:
    """The text's words, and what each kind of paraphrase makes of them.

    Args:
      run: whose vocabulary the replacements are taken from (DECA's dictionary
        constraint); without one, all that the lexicons have.
      lexicons: the folder of NLTK's data, if not where NLTK looks.
      paraphrases: a file of word pairs (PPDB), for that kind.

    Raises:
      UserError: for a missing lexicon, a text without words, or a run without corpus.
    """
    kinds = {"WordNet": views.WordNet(least_count=0, lexicons=lexicons)}
    if paraphrases:
        kinds["paraphrases"] = views.Paraphrases(paraphrases, least_count=0)
    kinds["antonyms"] = views.Antonyms(1.0, least_count=0, lexicons=lexicons)
    if run:  # without a corpus no word is rare
        kinds["uninformative"] = views.Uninformative(lexicons=lexicons)
    kinds["dropped"] = views.Dropped()
    tokenizer = (
        tokens.load_tokenizer(run / "tokenizer.json")
        if run
        else all_words(_words(text), lexicons, paraphrases)
    )
    document = Document("text", (Section("", text),))
    with tempfile.TemporaryDirectory() as folder:
        own = Corpus.build(
            Path(folder) / "text", [document], segments.whole, tokenizer, LIMIT, ""
        )
        corpus = Corpus.open(run / "corpus") if run else own
        found = {"words": _text(own[0], tokenizer)}
        for name, kind in kinds.items():
            if hasattr(kind, "fitted"):
                kind = kind.fitted(tokenizer, corpus, lambda: [document])
            generator = np.random.default_rng(seed)
            found[name] = _text(kind(own[0], generator)[1], tokenizer)
    return found


def all_words(
    words: Collection[str], lexicons: str | None, paraphrases: str | None
) -> Tokenizer:
    """A tokenizer of some words and of all that could replace them."""
    wordnet = lexicons_lib.WordNet(lexicons)
    pairs = lexicons_lib.pairs(paraphrases) if paraphrases else {}
    found = {*words, "not"}
    for word in words:
        found |= (
            wordnet.synonyms(word) | wordnet.antonyms(word) | pairs.get(word, set())
        )
    return word_tokenizer(sorted(found), LETTERS)


def _words(text: str) -> list[str]:
    found = re.findall(LETTERS, text.lower())
    if not found:
        raise UserError(f"the text {text[:40]!r} has no words")
    return found


def _text(segments: Segments, tokenizer: Tokenizer) -> str:
    return tokenizer.backend.decode(segments.tokens.tolist())
