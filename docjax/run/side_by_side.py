"""A text under each kind of paraphrase, side by side."""

import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from docjax.data import lexicons as lexicons_lib
from docjax.data import units
from docjax.data.corpus import Corpus
from docjax.data.records import full_text
from docjax.data.sources.files import files
from docjax.data.tokenizer import Tokenizer, load_tokenizer
from docjax.data.word_tokenizer import CLEANINGS, split, word_tokenizer
from docjax.errors import UserError
from docjax.run import corpora, fields
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
    """The text's words, and the words under each kind of paraphrase.

    A kind without a paraphrase of this text gives the words unchanged, and the reason.

    Args:
      run: a run whose vocabulary has all replacements (DECA's constraint), and whose
        own kind is shown as it trains; None: all replacements of the lexicons.
      lexicons: the folder of NLTK's data; None: where NLTK looks.
      paraphrases: a file of word pairs (PPDB), for `Paraphrases`.
      rewritten: a file of rewritten texts (JSON lines); the line whose id is the text.

    Raises:
      UserError: for a missing lexicon, file or corpus, and a text without words.
    """
    if seed < 0:
        raise UserError(f"seed {seed} is not a number of at least 0")
    rewrites = _rewritten(text, rewritten) if rewritten else []
    if run:
        if not (run / "tokenizer.json").is_file():
            raise UserError(
                f"--model {run} is no run; give the folder of one (--workdir)"
            )
        tokenizer = load_tokenizer(run / "tokenizer.json")
    else:
        known = split(" ".join([text, *rewrites]))
        if not known:
            raise UserError(f"the text {text[:40]!r} has no words: give another text")
        tokenizer = all_words(known, lexicons, paraphrases)
    kinds = _kinds(run, lexicons, paraphrases)
    words, texts = _replaced(text, tokenizer, kinds, run, seed)
    if not run:
        texts["Uninformative"] = f"{words} (without --model no word is rare)"
    if rewrites:
        texts["Rewritten"] = _text(tokenizer.encode(rewrites)[0], tokenizer)
    elif rewritten:
        texts["Rewritten"] = f"{words} (no line of {rewritten} has the text as its id)"
    return {"words": words, **texts}


def _replaced(
    text: str, tokenizer: Tokenizer, kinds: dict[str, Any], run: Path | None, seed: int
) -> tuple[str, dict[str, str]]:
    """The text's words, and the words under each kind that replaces words."""
    document = Document("text", (Section("", text),))
    texts = {}
    with tempfile.TemporaryDirectory() as folder:
        text_corpus = Corpus.build(
            Path(folder) / "text", [document], units.Whole(), tokenizer, LIMIT, ""
        )
        if not len(text_corpus[0].tokens):
            raise UserError(
                f"no word of {text[:40]!r} is in the vocabulary: give another text"
            )
        corpus, documents = text_corpus, None
        if run:
            corpus = Corpus.open(run / "corpus")
            documents = corpora.rows_trained_on(fields.read(run), corpus)
        words = _text(text_corpus[0].tokens, tokenizer)
        for name, kind in kinds.items():
            kind.files()
            try:
                fitted = kind.fitted(tokenizer, corpus, documents)
            except UserError as error:
                texts[name] = f"{words} ({error})"
                continue
            paraphrase = fitted(text_corpus[0], np.random.default_rng(seed))[1]
            texts[name] = _text(paraphrase.tokens, tokenizer)
    return words, texts


def _kinds(
    run: Path | None, lexicons: str | None, paraphrases: str | None
) -> dict[str, Any]:
    """The kinds of paraphrase by name; a run's own kind is as in its config."""
    least = {} if run else {"least_count": 0}
    kinds: list[Any] = [views.WordNet(**least, lexicons=lexicons)]
    if paraphrases:
        kinds.append(views.Paraphrases(paraphrases, **least))
    kinds += [views.Antonyms(1.0, **least, lexicons=lexicons), views.Dropped()]
    if run:
        kinds.append(views.Uninformative(lexicons=lexicons))
        part = fields.read(run).views
        if lexicons and "lexicons" in part.keywords:
            part = part.with_keywords(lexicons=lexicons)
        if part.fn.startswith(f"{views.__name__}."):
            kinds.append(part.built)
    return {type(kind).__name__: kind for kind in kinds}


def _rewritten(text: str, path: str) -> list[str]:
    """The rewritten text of `text` in the file, if there is one."""
    return [full_text(document) for document in files(path) if document.id == text][:1]


def all_words(
    words: Collection[str],
    lexicons: str | None,
    paraphrases: str | None,
    pattern: str = CLEANINGS["letters"],
) -> Tokenizer:
    """A tokenizer of `words` and of all their replacements; `pattern` is the regular
    expression of a word in the texts that the tokenizer reads."""
    wordnet = lexicons_lib.WordNet(lexicons)
    pairs = lexicons_lib.pairs(paraphrases) if paraphrases else {}
    known = {*words, "not"}
    for word in words:
        known |= (
            wordnet.synonyms(word) | wordnet.antonyms(word) | pairs.get(word, set())
        )
    return word_tokenizer(sorted(known), pattern)


def _text(ids: np.ndarray, tokenizer: Tokenizer) -> str:
    return tokenizer.backend.decode(ids.tolist())
