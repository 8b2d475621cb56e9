"""A document and a rewritten text of it, such as its translation back (DECA, 3.3)."""

import dataclasses
import functools
import itertools
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from jaxtyping import Int
from numpy.random import Generator

from docjax.data.corpus import DOCUMENTS_AT_ONCE, Corpus, fingerprint
from docjax.data.records import full_text
from docjax.data.sources.files import files as read
from docjax.data.sources.lines import files
from docjax.data.tokenizer import Tokenizer
from docjax.data.units import Whole
from docjax.errors import UserError
from docjax.types import Document, Units
from docjax.views.replaced import Documents, WordViews

logger = logging.getLogger(__name__)


def write(
    path: str | Path,
    documents: Iterable[Document],
    rewrite: Callable[[list[str]], list[str]],
) -> None:
    """Writes the file that `Rewritten` reads: the result of `rewrite` for full texts.

    `rewrite` gets a few hundred texts at a time. Documents that the file holds already
    are skipped, so that the same call continues after a stop. Empty texts are left out.
    """
    if Path(path).suffix in (".gz", ".xz", ".zst"):
        raise UserError(
            f"{path}: is compressed; name a file of plain text, compress it afterwards"
        )
    try:
        Path(path).touch()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    with open(path, "a+b") as file:
        known = _known(file)
        missing = (document for document in documents if document.id not in known)
        while batch := list(itertools.islice(missing, DOCUMENTS_AT_ONCE)):
            texts = rewrite([full_text(document) for document in batch])
            if len(texts) != len(batch):
                raise UserError(
                    f"rewrite gave {len(texts)} texts for {len(batch)}: return one each"
                )
            for document, text in zip(batch, texts, strict=True):
                if text.strip():
                    record = json.dumps({"id": document.id, "text": text})
                    file.write(f"{record}\n".encode())
            file.flush()


def _known(file: BinaryIO) -> set[str]:
    """The ids in the file; an incomplete last line is cut off."""
    file.seek(0)
    lines = file.readlines()
    ids = [_id(line) for line in lines]
    if lines and not lines[-1].endswith(b"\n"):
        if ids[-1] is None:
            ids.pop()
            file.truncate(file.tell() - len(lines[-1]))
        else:
            file.write(b"\n")
    if None in ids:
        raise UserError(
            f"{file.name}, line {ids.index(None) + 1}: not a rewritten text, "
            "JSON with id and text: mend the line, or write to another file"
        )
    return {name for name in ids if name is not None}


def _id(line: bytes) -> str | None:
    """The id of the rewritten text in a line; None if the line holds none."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    complete = isinstance(record, dict) and {"id", "text"} <= set(record)
    return str(record["id"]) if complete else None


@dataclasses.dataclass(frozen=True)
class Rewritten(WordViews):
    """The document and a rewritten text of it, such as its translation back.

    path: JSON lines with the `id` of a document and its rewritten `text`; `write` makes
    such a file. The texts are tokenised once, into a corpus beside the documents'.
    """

    path: str | None = None

    def files(self) -> tuple[Path, ...]:
        if self.path is None:
            raise UserError("Rewritten needs a file of texts: give --config.views.path")
        return tuple(files(self.path))

    def fitted(
        self, tokenizer: Tokenizer, corpus: Corpus, documents: Documents = None
    ) -> "Found":
        self.files()
        limit = corpus.summary()["longest"]
        texts = functools.partial(read, path=self.path)
        folder = corpus.folder.with_name("rewritten")
        known = fingerprint(texts, Whole(), tokenizer, limit)
        rewritten = Corpus.build(folder, texts(), Whole(), tokenizer, limit, known)
        sizes = rewritten.sizes(np.arange(len(rewritten)))
        rows = {name: row for row, name in enumerate(rewritten.ids) if sizes[row]}
        chosen = np.array([rows.get(name, -1) for name in corpus.ids])
        trained = chosen if documents is None else chosen[documents]
        missing = int((trained < 0).sum())
        if missing == len(trained):
            raise UserError(
                f"{self.path}: none of its {len(rewritten)} texts has a known word and "
                f"the id of a document; its first id is {rewritten.ids[0]!r}, a "
                f"document has {corpus.ids[0]!r}: give texts the ids of documents"
            )
        if missing:
            logger.warning(
                "%d of %d documents have no rewritten text with a known word: they "
                "stay as they are",
                missing,
                len(trained),
            )
        return Found(rewritten, chosen)


@dataclasses.dataclass(frozen=True, eq=False)
class Found(WordViews):
    """The document, and its rewritten text."""

    texts: Corpus
    rows: Int[np.ndarray, " c"]  # the row of each document's text in `texts`, or -1

    def __call__(self, units: Units, generator: Generator) -> tuple[Units, ...]:
        starts = np.flatnonzero(np.diff(units.documents, prepend=-1))
        spans = itertools.pairwise([*starts.tolist(), len(units)])
        parts = [self._of(units, start, end) for start, end in spans]
        return units, _joined(parts) if parts else units

    def _of(self, units: Units, start: int, end: int) -> Units:
        """The rewritten text of the document with these units, or else the units."""
        number = units.documents[start]
        if self.rows[number] >= 0:
            text = self.texts[int(self.rows[number])]
            return dataclasses.replace(text, documents=np.full(len(text), number))
        if end - start == len(units):
            return units
        return units.take(np.arange(start, end))


def _joined(parts: Sequence[Units]) -> Units:
    """The units of all documents in one `Units`; a single document stays as it is."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([part.lengths for part in parts])
    return Units(
        np.concatenate([part.tokens for part in parts]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([part.sections for part in parts]),
        np.zeros((0, 2), np.int32),
        documents=np.concatenate([part.documents for part in parts]),
    )
