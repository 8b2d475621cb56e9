"""A document and a rewritten text of it, such as its translation back (DECA, 3.3)."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from absl import logging

from docjax.config import UserError
from docjax.data.documents import full_text
from docjax.data.segments import whole
from docjax.data.sources.jsonl import jsonl
from docjax.data.tokens import (
    DOCUMENTS_AT_ONCE,
    Corpus,
    Tokenizer,
    segment_documents,
)
from docjax.types import Document, Section, Segments
from docjax.views.words import Source, WordViews


@dataclasses.dataclass(frozen=True)
class Rewritten:
    """The document and a rewritten text of it, such as its translation back.

    Attributes:
      path: JSON lines with `id` and `text`, the rewritten texts by document; or
      rewrite: a function from a list of texts to a list of texts.
    """

    path: str | None = None
    rewrite: Callable[[list[str]], list[str]] | None = None

    def fitted(self, tokenizer: Tokenizer, corpus: Corpus, source: Source) -> "Found":
        if (self.path is None) == (self.rewrite is None):
            raise UserError("Rewritten needs path or rewrite, one of them")
        limit, numbers = corpus.summary()["longest"], {}
        for number, identifier in enumerate(corpus.ids):
            numbers[identifier] = number
        found = {}
        for some in _batches(self._texts(source)):
            cut = segment_documents(some, whole, tokenizer, limit)
            found |= {
                numbers[document.id]: one
                for document, one in zip(some, cut, strict=True)
                if document.id in numbers
            }
        missing = len(corpus) - len(found)
        if missing:
            logging.warning(
                "%d of %d documents have no rewritten text: they stay as they are",
                missing,
                len(corpus),
            )
        return Found(found)

    def _texts(self, source: Source) -> Iterator[Document]:
        """The documents with their rewritten texts."""
        if self.path is not None:
            yield from jsonl(self.path)
            return
        for some in _batches(source()):
            texts = self.rewrite([full_text(document) for document in some])
            if len(texts) != len(some):
                raise UserError(
                    f"rewrite gave {len(texts)} texts for {len(some)}: one each is needed"
                )
            for document, text in zip(some, texts, strict=True):
                yield Document(document.id, (Section("", text),))


@dataclasses.dataclass(frozen=True, eq=False)
class Found(WordViews):
    """The other words are those found for the document by its number."""

    documents: Mapping[int, Segments]

    def __call__(
        self, segments: Segments, generator: np.random.Generator
    ) -> tuple[Segments, ...]:
        del generator
        numbers = segments.numbers
        first = np.flatnonzero(np.diff(numbers, prepend=-1))
        found = []
        for rows in np.split(np.arange(len(numbers)), first)[1:]:
            own = segments if len(first) == 1 else segments.take(rows)
            found.append(self.documents.get(int(numbers[rows[0]]), own))
        return segments, _joined(found, numbers[first]) if found else segments


def _joined(parts: Sequence[Segments], numbers: np.ndarray) -> Segments:
    """Documents in one piece; a single one stays what it is."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([part.lengths for part in parts])
    return Segments(
        np.concatenate([part.tokens for part in parts]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([part.sections for part in parts]),
        np.zeros((0, 2), np.int32),
        numbers=np.repeat(numbers, [len(part) for part in parts]),
    )


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    documents = iter(documents)
    while some := list(itertools.islice(documents, DOCUMENTS_AT_ONCE)):
        yield some
