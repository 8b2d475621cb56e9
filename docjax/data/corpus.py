"""A corpus: the units of all documents as tokens, in a folder on disk."""

import copy
import dataclasses
import functools
import hashlib
import itertools
import json
import logging
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from docjax.data import corpus_files
from docjax.data.segments import spread
from docjax.data.tokenizer import Tokenizer
from docjax.data.units import tokenize
from docjax.errors import UserError
from docjax.progress.bars import bar
from docjax.storage import atomic, lock, manifest
from docjax.types import Document, UnitCutter, Units

logger = logging.getLogger(__name__)

DOCUMENTS_AT_ONCE = 256


class Corpus:
    """The units of all documents, in a folder of arrays that are read as needed.

    `corpus[i]` is document i as `Units`. `build` writes the folder under another name
    and renames it at the end, so a folder with the final name is complete.

    Attributes:
      fingerprint: the hash of everything that the corpus was made from.
      ids, labels, splits: one entry per document, in the order of the source.
      words: the number of words of each document, int64.
      lengths: the number of tokens of each unit, int64.
      counts: the number of units of each document, int64.
      vectors: the parts of the vectors of units, float32 [n, d]; none unless
        precomputed.
      rows_with_vectors: the documents whose units have vectors, ascending.
    """

    vectors: tuple[np.ndarray, ...] = ()
    rows_with_vectors: Int[np.ndarray, " b"] = np.zeros(0, int)
    _ends: Int[np.ndarray, " b1"] = np.zeros(1, int)  # of their vectors, from 0

    def __init__(self, folder: Path):
        facts = corpus_files.read_facts(folder)
        if facts is None:
            raise UserError(
                f"{folder}: no corpus there, or a corpus of another version"
            )
        self.folder, self._summary = folder, facts["summary"]
        self.fingerprint: str = facts["fingerprint"]
        try:
            self._arrays = corpus_files.read_arrays(folder)
            self.ids, self.labels, self.splits, self.words = corpus_files.read_rows(
                folder
            )
            complete = corpus_files.fits(self._arrays, len(self.ids))
        except (OSError, EOFError, ValueError, IndexError):
            complete = False
        if not complete:
            raise UserError(f"{folder}: damaged corpus; remove it to build it again")
        self.lengths = np.diff(self._arrays["units"])
        self.counts = np.diff(self._arrays["documents"])

    @classmethod
    def open(cls, folder: str | Path) -> "Corpus":
        """The corpus in `folder`. Raises UserError if there is none."""
        return cls(Path(folder))

    @classmethod
    def build(
        cls,
        folder: str | Path,
        documents: Iterable[Document],
        units: UnitCutter,
        tokenizer: Tokenizer,
        limit: int,
        fingerprint: str,
        contents: Callable[[], str | None] = lambda: None,
    ) -> "Corpus":
        """The corpus in `folder`, built first unless its fingerprint is `fingerprint`.

        Only building reads `documents`. Processes that share the folder wait for the
        process that builds. `contents` returns the fingerprint of the contents and is
        called if `fingerprint` differs: a corpus of equal contents is kept and gets
        the new `fingerprint`.
        """
        folder = Path(folder)
        with lock.awaited(folder.with_name(folder.name + ".lock")):
            facts = corpus_files.read_facts(folder)
            if not facts or not manifest.agrees(facts, fingerprint, contents):
                of_contents = contents()  # before the documents are read
                partial = folder.with_name(folder.name + ".partial")
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir()
                with bar("corpus", unit="document") as read:
                    counted = read.each(documents)
                    pairs = _tokenized(counted, units, tokenizer, limit)
                    summary = corpus_files.write(
                        partial, pairs, tokenizer.vocabulary, fingerprint, of_contents
                    )
                logger.info("%s", _in_words(folder.name, summary))
                shutil.rmtree(folder, ignore_errors=True)
                atomic.rename(partial, folder)
            elif facts["fingerprint"] != fingerprint:
                corpus_files.write_facts(folder, facts | {"fingerprint": fingerprint})
                logger.info("corpus kept: its files have other times, equal contents")
        return cls(folder)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Units:
        index = range(len(self))[index]
        start, end = self._arrays["documents"][index : index + 2]
        offsets = np.array(self._arrays["units"][start : end + 1])
        tokens = self._arrays["tokens"][offsets[0] : offsets[-1]]
        edges = slice(*self._arrays["edge_offsets"][index : index + 2])
        return Units(
            tokens.astype(np.int32),
            offsets - offsets[0],
            np.array(self._arrays["sections"][start:end]),
            np.array(self._arrays["edges"][edges]),
            np.full(end - start, index),
            self._vectors_of(index),
        )

    def _vectors_of(self, index: int) -> Float[np.ndarray, "n d"] | None:
        """The vectors of a document's units, or None."""
        rows = self.rows_with_vectors
        place = int(np.searchsorted(rows, index))
        if place == len(rows) or rows[place] != index:
            return None
        units = slice(*self._ends[place : place + 2])
        parts = [np.asarray(part[units]) for part in self.vectors]
        return np.concatenate(parts, axis=-1)

    def concatenated(
        self, documents: Int[np.ndarray, " b"], limit: int | None = None
    ) -> Units:
        """The units of several documents, document after document.

        limit: the number of first units to read per document; None reads all.
        """
        first, after = self._rows(documents, limit)
        rows = spread(first, after - first)
        starts, ends = (self._arrays["units"][row] for row in (first, after))
        return Units(
            self.tokens[spread(starts, ends - starts)].astype(np.int32),
            np.concatenate([[0], np.cumsum(self.lengths[rows])]),
            np.array(self._arrays["sections"][rows]),
            np.zeros((0, 2), np.int32),
            np.repeat(documents, after - first),
        )

    def sizes(
        self, documents: Int[np.ndarray, " b"], limit: int | None = None
    ) -> Int[np.ndarray, " b"]:
        """The number of tokens of each document, or of its first `limit` units."""
        first, after = self._rows(documents, limit)
        return self._arrays["units"][after] - self._arrays["units"][first]

    def _rows(self, documents, limit: int | None) -> tuple[np.ndarray, np.ndarray]:
        first, after = (self._arrays["documents"][documents + end] for end in (0, 1))
        return first, np.minimum(after, first + limit) if limit else after

    @property
    def tokens(self) -> np.ndarray:
        """The tokens of all documents, one after the other."""
        return self._arrays["tokens"]

    def word_counts(
        self,
        vocabulary: int,
        documents: Int[np.ndarray, " b"] | None = None,
        limit: int | None = None,
    ) -> Int[np.ndarray, " w"]:
        """How often each of `vocabulary` tokens occurs in `documents` (None: in all).

        limit: as in `concatenated`.
        """
        documents = np.arange(len(self)) if documents is None else documents
        counts = np.zeros(vocabulary, np.int64)
        for first in range(0, len(documents), DOCUMENTS_AT_ONCE):
            batch = documents[first : first + DOCUMENTS_AT_ONCE]
            tokens = self.concatenated(batch, limit).tokens
            counts += np.bincount(tokens, minlength=vocabulary)
        return counts

    def starts(self) -> Int[np.ndarray, " c"]:
        """The first token of each document, and at the end the number of all tokens."""
        return self._arrays["units"][self._arrays["documents"]]

    @functools.cached_property
    def links(self) -> list[Int[np.ndarray, " l"]]:
        """For each document, the rows of the other documents that it links to."""
        rows = {name: row for row, name in enumerate(self.ids)}
        return [
            np.array([rows[i] for i in links if rows.get(i, row) != row], int)
            for row, (links, _) in enumerate(corpus_files.read_details(self.folder))
        ]

    @property
    def has_sections(self) -> bool:
        """Whether the units of some document are in several sections."""
        changes = np.flatnonzero(np.diff(self._arrays["sections"])) + 1
        return bool(np.setdiff1d(changes, self._arrays["documents"]).size)

    @property
    def headings(self) -> Iterator[list[str]]:
        """The headings of the sections of each document."""
        return (headings for _, headings in corpus_files.read_details(self.folder))

    def with_vectors(
        self,
        *vectors: Float[np.ndarray, "n _"],
        rows: Int[np.ndarray, " b"] | None = None,
    ) -> "Corpus":
        """A copy of this corpus whose units have `vectors`, parts laid side by side.

        rows: the documents whose units these are, ascending; None: all.
        """
        corpus = copy.copy(self)
        rows = np.arange(len(self)) if rows is None else rows
        corpus.vectors, corpus.rows_with_vectors = vectors, rows
        corpus._ends = np.concatenate([[0], np.cumsum(self.counts[rows])])
        return corpus

    def summary(self) -> dict[str, Any]:
        """The numbers of documents, words, units, tokens and edges; of documents by
        label and by split; of tokens in the longest unit (`longest`); and of units in
        the document with the most units (`most_units`)."""
        return dict(self._summary)


def _in_words(name: str, summary: dict[str, Any]) -> str:
    """What a corpus holds, for the log."""
    counted = "documents", "words", "units", "tokens"
    counts = ", ".join(f"{summary.get(key, 0):,} {key}" for key in counted)
    labels = len(summary["labels"])
    return f"{name}: {counts}" + (f", {labels} labels" if labels else "")


def fingerprint(
    source: Callable | None,
    units: Any,
    tokenizer: Tokenizer,
    limit: int,
    content: bool = False,
) -> str:
    """The sha256 of everything that a corpus on disk depends on.

    It covers the functions with their keywords, as `docjax.parts.named.build` binds
    them, the stamp of the source (sizes and times of files, versions of packages), the
    tokenizer, the limit and the format. With `content`, it covers the bytes of files
    instead of their sizes and times: copies hash alike, but every file is read.
    """
    parts = [_part(source, content), _part(units, content), tokenizer.sha256, limit]
    facts = json.dumps([corpus_files.FORMAT, *parts], default=str)
    return hashlib.sha256(facts.encode()).hexdigest()


def contents_of(documents: Iterable[Document], units: UnitCutter) -> str:
    """The sha256 of documents and of the units that they are cut into."""
    sha256 = hashlib.sha256()
    for document in documents:
        sha256.update(repr([document, units(document)]).encode("utf-8", "replace"))
    return sha256.hexdigest()


def _tokenized(
    documents: Iterable[Document], units: UnitCutter, tokenizer: Tokenizer, limit: int
) -> Iterator[tuple[Document, Units]]:
    """Each document with its units; memory holds `DOCUMENTS_AT_ONCE` documents."""
    documents, empty, room = iter(documents), True, tokenizer.frame(limit).room
    full = 0
    while batch := list(itertools.islice(documents, DOCUMENTS_AT_ONCE)):
        empty = False
        tokenized = tokenize(batch, units, tokenizer, limit)
        for document, document_units in zip(batch, tokenized, strict=True):
            if not len(document_units):
                raise UserError(f"document {document.id!r} has no units: give it words")
            full += int((document_units.lengths == room).sum())
            yield document, document_units
    if empty:
        raise UserError("empty corpus: the source has no documents")
    if full and units.readable:
        logger.warning(
            "%d units have as many tokens as a segment has room for (%d): longer "
            "sentences and texts without sentence ends are cut inside; shorter units or "
            "more segment_tokens keep them whole",
            full,
            room,
        )


def _part(value: Any, content: bool) -> Any:
    """A function, its keywords and the result of its module's `stamp`, as JSON."""
    if isinstance(value, (list, tuple)):
        return [_part(item, content) for item in value]
    if dataclasses.is_dataclass(value):
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        return [name, dataclasses.asdict(value)]
    if not hasattr(value, "__dict__"):
        return value
    fn, keywords = getattr(value, "func", value), getattr(value, "keywords", {})
    if not hasattr(fn, "__qualname__"):  # an instance of a plain class
        fn, keywords = type(fn), vars(fn)
    stamp = stamp_of(value)
    return [
        f"{fn.__module__}.{fn.__qualname__}",
        {key: _part(keywords[key], content) for key in sorted(keywords)},
        stamp(**keywords, content=content) if stamp else None,
    ]


def stamp_of(part: Any) -> Callable | None:
    """The function `stamp` in the module of a function or class: from its keywords to
    what changes when the files that it reads change. None without such a function."""
    fn = getattr(part, "func", part)
    module = sys.modules[fn.__module__] if hasattr(fn, "__qualname__") else None
    return getattr(module, "stamp", None)
