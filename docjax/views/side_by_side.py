"""A text under each of the paraphrases, to be looked at side by side."""

import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from docjax.data import lexicons as lexicons_lib
from docjax.data import splits, units
from docjax.data.corpus import Corpus
from docjax.data.documents import full_text
from docjax.data.sources.jsonl import jsonl
from docjax.data.tokenizer import Tokenizer, load_tokenizer
from docjax.data.word_tokenizer import CLEANINGS, split, word_tokenizer
from docjax.errors import UserError
from docjax.parts import named
from docjax.storage import json_file
from docjax.types import Document, Section
from docjax.views import replaced as views

LIMIT = 1 << 16  # words


def augmented(
    text: str,
    *,
    run: Path | None = None,
    lexicons: str | None = None,
    paraphrases: str | None = None,
    rewritten: str | None = None,
    seed: int = 0,
) -> dict[str, str]:
    """The text's words, and what each kind of paraphrase makes of them.

    A kind that has none for this text gives the words as they are, and says why.

    Args:
      run: whose vocabulary the replacements are taken from (DECA's constraint), and
        whose own kind is as it trains; without one, all that the lexicons have.
      lexicons: the folder of NLTK's data, if not where NLTK looks.
      paraphrases: a file of word pairs (PPDB), for that kind.
      rewritten: a file of rewritten texts (JSON lines), the one whose id is the text.

    Raises:
      UserError: for a missing lexicon, file or corpus, and a text without words.
    """
    if seed < 0:
        raise UserError(f"seed {seed} is not a number of at least 0")
    others = _rewritten(text, rewritten) if rewritten else []
    if run:
        tokenizer = load_tokenizer(run / "tokenizer.json")
    else:
        words = _words(" ".join([text, *others]))
        tokenizer = all_words(words, lexicons, paraphrases)
    kinds = _kinds(run, lexicons, paraphrases)
    words, texts = _replaced(text, tokenizer, kinds, run, seed)
    if not run:
        texts["Uninformative"] = f"{words} (without --model no word is rare)"
    if others:
        texts["Rewritten"] = _text(tokenizer.encode(others)[0], tokenizer)
    elif rewritten:
        texts["Rewritten"] = f"{words} (no line of {rewritten} has the text as its id)"
    return {"words": words, **texts}


def _replaced(
    text: str, tokenizer: Tokenizer, kinds: dict[str, Any], run: Path | None, seed: int
) -> tuple[str, dict[str, str]]:
    """The text's words, and what each of the kinds that replace words makes of them."""
    document = Document("text", (Section("", text),))
    texts = {}
    with tempfile.TemporaryDirectory() as folder:
        own = Corpus.build(
            Path(folder) / "text", [document], units.Whole(), tokenizer, LIMIT, ""
        )
        if not len(own[0].tokens):
            raise UserError(f"no word of {text[:40]!r} is in the vocabulary")
        corpus, documents = own, None
        if run:
            corpus = Corpus.open(run / "corpus")
            documents = _trained_on(json_file.read(run / "config.json"), corpus)
        words = _text(own[0].tokens, tokenizer)
        for name, kind in kinds.items():
            kind.files()
            try:
                fitted = kind.fitted(tokenizer, corpus, documents)
            except UserError as error:
                texts[name] = f"{words} ({error})"
                continue
            other = fitted(own[0], np.random.default_rng(seed))[1]
            texts[name] = _text(other.tokens, tokenizer)
    return words, texts


def _trained_on(config: Mapping[str, Any], corpus: Corpus) -> np.ndarray:
    """The documents that a run reads in training, by number."""
    if config["transductive"]:
        return np.arange(len(corpus))
    return splits.rows(corpus.splits, config["splits"]["train"], with_none=True)


def _kinds(
    run: Path | None, lexicons: str | None, paraphrases: str | None
) -> dict[str, Any]:
    """By name; that of a run as its config has it."""
    least = {} if run else {"least_count": 0}
    found: list[Any] = [views.WordNet(**least, lexicons=lexicons)]
    if paraphrases:
        found.append(views.Paraphrases(paraphrases, **least))
    found.append(views.Antonyms(1.0, **least, lexicons=lexicons))
    found.append(views.Dropped())
    if run:
        found.append(views.Uninformative(lexicons=lexicons))
        own = dict(json_file.read(run / "config.json")["views"])
        if lexicons and "lexicons" in own:
            own["lexicons"] = lexicons
        if own["fn"].startswith(f"{views.__name__}."):
            found.append(named.build(own))
    return {type(kind).__name__: kind for kind in found}


def _rewritten(text: str, path: str) -> list[str]:
    """The rewritten text in a file of them, if there is one."""
    return [full_text(one) for one in jsonl(path) if one.id == text][:1]


def all_words(
    words: Collection[str],
    lexicons: str | None,
    paraphrases: str | None,
    pattern: str = CLEANINGS["letters"],
) -> Tokenizer:
    """A tokenizer of some words and of all that could replace them.

    pattern: what a word is in the texts that it reads.
    """
    wordnet = lexicons_lib.WordNet(lexicons)
    pairs = lexicons_lib.pairs(paraphrases) if paraphrases else {}
    found = {*words, "not"}
    for word in words:
        found |= (
            wordnet.synonyms(word) | wordnet.antonyms(word) | pairs.get(word, set())
        )
    return word_tokenizer(sorted(found), pattern)


def _words(text: str) -> list[str]:
    found = split(text)
    if not found:
        raise UserError(f"the text {text[:40]!r} has no words")
    return found


def _text(ids: np.ndarray, tokenizer: Tokenizer) -> str:
    return tokenizer.backend.decode(ids.tolist())
