"""A document and a rewritten text of it, such as its translation back (DECA, 3.3)."""

import dataclasses
import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from absl import logging
from jaxtyping import Int

from docjax.data.corpus import DOCUMENTS_AT_ONCE, Corpus, fingerprint
from docjax.data.documents import full_text
from docjax.data.sources.jsonl import files, jsonl
from docjax.data.tokenizer import Tokenizer
from docjax.data.units import Whole
from docjax.errors import UserError
from docjax.types import Document, Units
from docjax.views.replaced import Documents, WordViews


def write(
    path: str | Path,
    documents: Iterable[Document],
    rewrite: Callable[[list[str]], list[str]],
) -> None:
    """Writes the file that `Rewritten` reads: what `rewrite` makes of the full texts.

    It gets some hundred texts at a time. What is in the file already is not asked for
    again, so that the same call goes on where it was stopped. An empty text is left out.
    """
    if Path(path).suffix in (".gz", ".xz", ".zst"):
        raise UserError(f"{path}: write plain text, compress it afterwards")
    try:
        Path(path).touch()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    with open(path, "a+b") as file:
        known = _known(file)
        for some in _batches(one for one in documents if one.id not in known):
            texts = rewrite([full_text(one) for one in some])
            if len(texts) != len(some):
                raise UserError(
                    f"rewrite gave {len(texts)} texts for {len(some)}: one each is needed"
                )
            for document, text in zip(some, texts, strict=True):
                if text.strip():
                    record = json.dumps({"id": document.id, "text": text})
                    file.write(f"{record}\n".encode())
            file.flush()


def _known(file: BinaryIO) -> set[str]:
    """The ids that are in the file; half a line at its end is cut off."""
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
            f"{file.name}, line {ids.index(None) + 1}: not a rewritten text, which is "
            "JSON with id and text: mend it, or write to another file"
        )
    return {one for one in ids if one is not None}


def _id(line: bytes) -> str | None:
    """The id of a line, if it is one of a rewritten text."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(found, dict) and {"id", "text"} <= set(found)
    return str(found["id"]) if whole else None


@dataclasses.dataclass(frozen=True)
class Rewritten(WordViews):
    """The document and a rewritten text of it, such as its translation back.

    path: JSON lines with `id` and `text`, the rewritten texts by document; `write`
    makes them with a function. They are tokenised once, into a corpus beside that of
    the documents.
    """

    path: str | None = None

    def files(self) -> tuple[Path, ...]:
        """The files of texts. Raises UserError if they are missing."""
        if self.path is None:
            raise UserError("Rewritten needs a file of texts: --config.views.path")
        return tuple(files(self.path))

    def fitted(
        self, tokenizer: Tokenizer, corpus: Corpus, documents: Documents = None
    ) -> "Found":
        self.files()
        limit = corpus.summary()["longest"]
        texts = functools.partial(jsonl, path=self.path)
        found = Corpus.build(
            corpus.folder.with_name("rewritten"),
            texts(),
            Whole(),
            tokenizer,
            limit,
            fingerprint(texts, Whole(), tokenizer, limit),
        )
        sizes = found.sizes(np.arange(len(found)))
        rows = {one: row for row, one in enumerate(found.ids) if sizes[row]}
        chosen = np.array([rows.get(one, -1) for one in corpus.ids])
        read = chosen if documents is None else chosen[documents]
        missing = int((read < 0).sum())
        if missing == len(read):
            raise UserError(
                f"{self.path}: none of its {len(found)} texts has a known word and the "
                f"id of a document; {found.ids[0]!r} is its first, {corpus.ids[0]!r} the "
                "documents'"
            )
        if missing:
            logging.warning(
                "%d of %d documents have no rewritten text with a known word: they stay "
                "as they are",
                missing,
                len(read),
            )
        return Found(found, chosen)


@dataclasses.dataclass(frozen=True, eq=False)
class Found(WordViews):
    """The other words are those of the text found for the document.

    rows: of each document in the corpus, where its text lies in `texts`, or -1.
    """

    texts: Corpus
    rows: Int[np.ndarray, " c"]

    def __call__(
        self, units: Units, generator: np.random.Generator
    ) -> tuple[Units, ...]:
        del generator
        starts = np.flatnonzero(np.diff(units.documents, prepend=-1))
        ends = [*starts[1:].tolist(), len(units)]
        found = [
            self._of(units, start, end) for start, end in zip(starts.tolist(), ends)
        ]
        return units, _joined(found) if found else units

    def _of(self, units: Units, start: int, end: int) -> Units:
        """The rewritten text of the document with these units; without one, the units."""
        number = units.documents[start]
        if self.rows[number] >= 0:
            found = self.texts[int(self.rows[number])]
            return dataclasses.replace(found, documents=np.full(len(found), number))
        if end - start == len(units):
            return units
        return units.take(np.arange(start, end))


def _joined(parts: Sequence[Units]) -> Units:
    """Documents in one piece; a single one stays what it is."""
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


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    documents = iter(documents)
    while some := list(itertools.islice(documents, DOCUMENTS_AT_ONCE)):
        yield some
