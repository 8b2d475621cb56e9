"""A corpus: the units of all documents as tokens, in a folder that is read from disk."""

import copy
import dataclasses
import fcntl
import functools
import hashlib
import itertools
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging
from jaxtyping import Float, Int

from docjax.data import corpus_files
from docjax.data.segments import spread
from docjax.data.tokenizer import Tokenizer
from docjax.data.units import tokenize
from docjax.errors import UserError
from docjax.storage import atomic, manifest
from docjax.types import Document, UnitCutter, Units

DOCUMENTS_AT_ONCE = 256


class Corpus:
    """The units of all documents, in a folder of arrays that are read as needed.

    `corpus[i]` is document i as `Units`. The folder is complete or not there at
    all: it is written under another name, and renamed at the end.

    Attributes:
      fingerprint: of what the corpus was made from.
      ids, labels, splits: of each document, in the order of the source.
      words: of each document, int64.
      lengths: tokens of each unit of the corpus, int64.
      counts: units of each document, int64.
      vectors: of each unit, float32 [units, d], if they were computed before.
    """

    vectors: np.ndarray | None = None

    def __init__(self, folder: Path):
        facts = corpus_files.read_facts(folder)
        if facts is None:
            raise UserError(f"{folder}: no corpus there, or one of another version")
        self.folder, self._summary = folder, facts["summary"]
        self.fingerprint: str = facts["fingerprint"]
        try:
            self._arrays = corpus_files.read_arrays(folder)
            self.ids, self.labels, self.splits, self.words = corpus_files.read_rows(
                folder
            )
            whole = corpus_files.fits(self._arrays, len(self.ids))
        except (OSError, EOFError, ValueError, IndexError):
            whole = False
        if not whole:
            raise UserError(f"{folder}: damaged; remove it, and it is built again")
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
        """The corpus in `folder`, written first unless its `fingerprint` is this.

        `documents` are read only if it is written. Processes that share the folder
        wait for the one that writes. `contents` gives the fingerprint of the contents,
        asked for if the other differs: a corpus of the same contents stays as it is,
        and takes the new `fingerprint`.
        """
        folder = Path(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.with_name(folder.name + ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            facts = corpus_files.read_facts(folder)
            if not facts or not manifest.agrees(facts, fingerprint, contents):
                of_contents = contents()  # before the documents are read
                partial = folder.with_name(folder.name + ".partial")
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir()
                pairs = _tokenized(documents, units, tokenizer, limit)
                summary = corpus_files.write(
                    partial, pairs, tokenizer.vocabulary, fingerprint, of_contents
                )
                logging.info("corpus: %s", summary)
                shutil.rmtree(folder, ignore_errors=True)
                atomic.rename(partial, folder)
            elif facts["fingerprint"] != fingerprint:
                corpus_files.write_facts(folder, facts | {"fingerprint": fingerprint})
                logging.info("corpus kept: the same contents in files of other times")
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
            None if self.vectors is None else self.vectors[start:end],
        )

    def concatenated(
        self, documents: Int[np.ndarray, " b"], limit: int | None = None
    ) -> Units:
        """The units of several documents, those of one after those of another.

        limit: the first units of each alone; None reads all.
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
        """Tokens of some documents, or of the first `limit` units of each."""
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
        """How often some documents, or all, have each of `vocabulary` tokens.

        limit: as in `concatenated`.
        """
        documents = np.arange(len(self)) if documents is None else documents
        counts = np.zeros(vocabulary, np.int64)
        for first in range(0, len(documents), DOCUMENTS_AT_ONCE):
            some = documents[first : first + DOCUMENTS_AT_ONCE]
            tokens = self.concatenated(some, limit).tokens
            counts += np.bincount(tokens, minlength=vocabulary)
        return counts

    def starts(self) -> Int[np.ndarray, " c"]:
        """Where each document's tokens start, and after the last where they end."""
        return self._arrays["units"][self._arrays["documents"]]

    @functools.cached_property
    def links(self) -> list[Int[np.ndarray, " l"]]:
        """The rows of the documents that each document links to, itself left out."""
        rows = {name: row for row, name in enumerate(self.ids)}
        return [
            np.array([rows[i] for i in detail.links if rows.get(i, row) != row], int)
            for row, detail in enumerate(corpus_files.read_details(self.folder))
        ]

    def with_vectors(self, vectors: Float[np.ndarray, "n d"]) -> "Corpus":
        """This corpus, its units with their vectors."""
        found = copy.copy(self)
        found.vectors = vectors
        return found

    def summary(self) -> dict[str, Any]:
        """Numbers of documents, words, units, tokens and edges; of documents by label
        and split; and the most tokens of a unit (`longest`) and units of a document
        (`most_units`)."""
        return dict(self._summary)


def fingerprint(
    source: Callable | None,
    units: Any,
    tokenizer: Tokenizer,
    limit: int,
    content: bool = False,
) -> str:
    """What a corpus on disk depends on, as one sha256.

    That is: the functions with their keywords, as `docjax.parts.named.build` binds
    them, the stamp of the source (sizes and times of files, versions of packages), the
    tokenizer, the limit, and the format. With `content`, the bytes of files take the place of
    their sizes and times: equal for copies, but all of them are read.
    """
    parts = [_part(source, content), _part(units, content), tokenizer.sha256, limit]
    facts = json.dumps([corpus_files.FORMAT, *parts], default=str)
    return hashlib.sha256(facts.encode()).hexdigest()


def _tokenized(
    documents: Iterable[Document], units: UnitCutter, tokenizer: Tokenizer, limit: int
) -> Iterator[tuple[Document, Units]]:
    """Each document with its units; `DOCUMENTS_AT_ONCE` are in memory."""
    documents, empty = iter(documents), True
    while batch := list(itertools.islice(documents, DOCUMENTS_AT_ONCE)):
        empty = False
        tokenized = tokenize(batch, units, tokenizer, limit)
        for document, own in zip(batch, tokenized, strict=True):
            if not len(own):
                raise UserError(f"document {document.id!r} has no units: no words")
            yield document, own
    if empty:
        raise UserError("empty corpus: the source has no documents")


def _part(value: Any, content: bool) -> Any:
    """A function and its keywords, and what its module's `stamp` adds, as JSON."""
    if isinstance(value, (list, tuple)):
        return [_part(one, content) for one in value]
    if dataclasses.is_dataclass(value):
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        return [name, dataclasses.asdict(value)]
    if not callable(value):
        return value
    fn, keywords = getattr(value, "func", value), getattr(value, "keywords", {})
    stamp = getattr(sys.modules[fn.__module__], "stamp", None)
    return [
        f"{fn.__module__}.{fn.__qualname__}",
        {key: _part(keywords[key], content) for key in sorted(keywords)},
        stamp(**keywords, content=content) if stamp else None,
    ]
