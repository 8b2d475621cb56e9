"""BM25 by bm25s: settings by name, in memory or memory-mapped.

A word scores idf * tf / (tf + k1 * (1 - b + b * length / mean length)), with
idf = ln(1 + (N - df + 0.5) / (df + 0.5)), as in Lucene since version 8. Anserini before
that and many papers multiply by k1 + 1: ranks are the same, but scores are not, which
matters to a raw fusion (`docjax.retrieval.fusion`). rank_bm25 has another idf, so the
preset of its name, with its k1 and b, ranks a little differently.

Words of one letter are not read: most are initials and rests of "'s".
"""

import dataclasses
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from docjax.data.records import full_text
from docjax.errors import UserError, library
from docjax.parts import named
from docjax.storage import json_file
from docjax.types import Document, Run

TOP = 1000
SETTINGS = "docjax_settings.json"


@dataclasses.dataclass(frozen=True)
class Settings:
    """How texts become words, and how words score.

    Attributes:
      stemmer: "porter", "english" (its successor) or another language of Snowball;
        None leaves words as they are.
      stop_words: the words that are left out, in small letters, or "en" or another
        language of bm25s for those of the language; None keeps all.
    """

    k1: float = 1.5  # how much repetitions of a word count; 0: not at all
    b: float = 0.75  # how much a document's length lowers its score, from 0 to 1
    stemmer: str | None = "english"
    stop_words: str | tuple[str, ...] | None = "en"
    raw_documents: bool = False  # leaves their words as they are: a fault of wikIR

    def __post_init__(self) -> None:
        if self.k1 < 0 or not 0 <= self.b <= 1:
            raise UserError(
                f"BM25 settings k1 {self.k1}, b {self.b}: give a k1 from 0 on, and a b "
                "from 0 to 1"
            )

    @property
    def of_documents(self) -> "Settings":
        """How the texts of documents become words."""
        if not self.raw_documents:
            return self
        return dataclasses.replace(self, stemmer=None, stop_words=None)

    def words(self, texts: Sequence[str]) -> Any:
        """The words of each text, as bm25s reads them."""
        bm25s, stemmers = libraries()
        stop = self.stop_words
        stop = list(stop) if isinstance(stop, tuple) else stop
        stemmer = self.stemmer and stemmers.Stemmer(self.stemmer)
        options = {"stopwords": stop, "stemmer": stemmer, "show_progress": False}
        return bm25s.tokenize(texts, **options)


PRESETS = {
    "docjax": Settings(),
    "anserini": Settings(k1=0.9, b=0.4, stemmer="porter"),
    "rank_bm25": Settings(k1=1.5, b=0.75, stemmer="porter"),
    # What WIKIR's published BM25 rows have: queries are stemmed, documents are not.
    "wikir": Settings(k1=1.5, b=0.75, stemmer="porter", raw_documents=True),
}


EXAMPLE = '{"k1": 1.2, "b": 0.75, "stemmer": "porter", "stop_words": null}'


@dataclasses.dataclass(frozen=True, eq=False)
class Index:
    """The words of documents, ready to be searched; `ids` in the documents' order."""

    scorer: Any
    ids: Sequence[str]
    settings: Settings

    def search(self, queries: Mapping[str, str], top: int = TOP) -> Run:
        """The `top` documents of each query that share a word with it."""
        if not queries:
            return {}
        words, top = (
            self.settings.words(list(queries.values())),
            min(top, len(self.ids)),
        )
        rows, scores = self.scorer.retrieve(words, k=top, show_progress=False)
        ranked = zip(queries, rows.tolist(), scores, strict=True)
        return {
            query: {self.ids[row]: float(s) for row, s in zip(best, of) if s > 0}
            for query, best, of in ranked
        }


def load(folder: Path, ids: Sequence[str]) -> Index:
    """The index that `bm25_files.write` wrote, memory-mapped."""
    bm25s, _ = libraries()
    scorer = bm25s.BM25.load(str(folder), mmap=True, load_corpus=False)
    settings = _built(json_file.read(folder / SETTINGS), folder / SETTINGS)
    return Index(scorer, ids, settings)


def index(documents: Iterable[Document], settings: Settings | None = None) -> Index:
    """The index of all documents, in memory. Raises UserError if bm25s or PyStemmer is
    not installed, or no document has a word."""
    bm25s, _ = libraries()
    settings = settings or Settings()
    ids, texts = [], []
    for document in documents:
        ids.append(document.id)
        texts.append(full_text(document))
    words = settings.of_documents.words(texts)
    check_words(sum(map(len, words.ids)), len(ids), settings)
    scorer = bm25s.BM25(k1=settings.k1, b=settings.b)
    scorer.index(words, show_progress=False)
    return Index(scorer, ids, settings)


def check_words(words: int, documents: int, settings: Settings) -> None:
    """Raises UserError if no document has a word."""
    if not words:
        stopped = " besides stop words" if settings.stop_words else ""
        raise UserError(f"BM25: none of {documents} documents has a word{stopped}")


def preset(name: str) -> Settings:
    """The settings of a name, or of a JSON object with attributes of `Settings`. Raises
    UserError for an unknown name, and for settings that cannot work."""
    if name in PRESETS:
        return PRESETS[name]
    if not name.startswith("{"):
        raise UserError(
            f"BM25 settings {name!r} are none of {', '.join(PRESETS)}; others are JSON, "
            f"such as {EXAMPLE}"
        )
    try:
        settings = _built(json.loads(name), "BM25 settings")
        settings.words(["words"])  # raises for an unknown language
    except UserError:
        raise
    except (KeyError, ValueError) as error:
        raise UserError(
            f"BM25 settings {name}: {error.args[0]}; give a JSON object such as {EXAMPLE}"
        ) from None
    return settings


def _built(node: dict[str, Any], path: object) -> Settings:
    """The settings of a JSON object; `path` names it in errors."""
    fn = {"fn": f"{Settings.__module__}.{Settings.__name__}"}
    return named.build(node | fn, path=str(path))


def libraries() -> tuple[ModuleType, ModuleType]:
    """bm25s and PyStemmer. Raises UserError if either is not installed."""
    bm25s, stemmers = (library(n, "BM25", "retrieval") for n in ("bm25s", "Stemmer"))
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it logs every step
    return bm25s, stemmers
