"""What the siamese baselines read: documents and pairs, and texts as word ids.

Axis letters: c documents, b pairs, t words.
"""

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int

from benchmarks.matching import LEFT_OUT
from benchmarks.siamese_models import PADDING
from docjax.data.pairs import Pair, check_kinds, read_pairs
from docjax.data.sources.jsonl import jsonl
from docjax.data.units import Sentences
from docjax.data.word_tokenizer import train_words
from docjax.errors import UserError
from docjax.types import Document

Pairs = tuple[Int[np.ndarray, "b 2"], Bool[np.ndarray, " b"]]  # rows, similar


@dataclasses.dataclass(frozen=True, eq=False)
class Data:
    """Documents, and the pairs that train, that choose, and that are scored."""

    documents: Sequence[Document]
    train: Pairs
    dev: Pairs
    test: Pairs


def read(flags: argparse.Namespace) -> Data:
    """The data of the flags; prints what is left out.

    Raises:
      UserError: for bad documents or pairs, and pairs of unknown documents.
    """
    documents = list(jsonl(flags.documents, without=LEFT_OUT))
    table = read_pairs(Path(flags.pairs))
    if missing := {"train", "dev", "test"} - set(table):
        raise UserError(
            f"{flags.pairs}: there are no pairs of the splits "
            f"{', '.join(sorted(missing))}; benchmarks.colde writes a table with all"
        )
    rows = {document.id: row for row, document in enumerate(documents)}
    read_ = partial(as_rows, flags.pairs, rows)
    parts = {name: read_(table[name]) for name in ("train", "dev", "test")}
    for name, (_, similar) in parts.items():
        check_kinds(name, similar)
    print(f"Pairs: {', '.join(f'{len(table[name])} {name}' for name in parts)}.")
    return Data(documents, *parts.values())


def as_rows(name: str, rows: Mapping[str, int], pairs: Sequence[Pair]) -> Pairs:
    unknown = {name for pair in pairs for name in pair[:2]} - set(rows)
    if unknown:
        raise UserError(
            f"{name}: {len(unknown)} of its documents are not among the documents, the "
            f"first is {min(unknown)!r}: give the file that holds them"
        )
    found = np.array([[rows[name] for name in pair[:2]] for pair in pairs])
    return found, np.array([pair.similar for pair in pairs])


def words_of(
    documents: Sequence[Document], most: int
) -> tuple[list[list[list[int]]], int]:
    """The word ids of each sentence of the documents, and the number of words.

    Prints what is left out behind the first `most` words of a document.
    """
    texts = sentences_of(documents)
    tokenizer = train_words((t for text in texts for t in text), stop_words=False)
    encoded = [[ids.tolist() for ids in tokenizer.encode(text)] for text in texts]
    total = sum(len(ids) for text in encoded for ids in text)
    for text in encoded:
        room = most
        for place, ids in enumerate(text):
            text[place] = ids[:room]
            room -= len(text[place])
    kept = sum(len(ids) for text in encoded for ids in text)
    print(f"The first {most} words of a document leave out {1 - kept / total:.1%}.")
    return encoded, tokenizer.vocabulary


def sentences_of(documents: Sequence[Document]) -> list[list[str]]:
    """The sentences of each document, title and headings included."""
    return [[piece.text for piece in Sentences()(document)] for document in documents]


def padded(rows: Sequence[Sequence[int]], width: int = 0) -> Int[np.ndarray, "c t"]:
    """Word ids in rows of `width`, or of the longest row."""
    width = width or max(1, *map(len, rows))
    found = np.full((len(rows), width), PADDING, np.int32)
    for row, words in zip(found, rows, strict=True):
        row[: len(words)] = words
    return found
