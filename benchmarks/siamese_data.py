"""What the siamese baselines read: documents and pairs, and texts as word ids.

Axis letters: c documents, b pairs, t words.
"""

import argparse
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int

from benchmarks.siamese_models import PADDING
from docjax.data.pairs import Pair, check_kinds, read_pairs
from docjax.data.sources.jsonl import jsonl
from docjax.data.units import Sentences
from docjax.data.word_tokenizer import train_words
from docjax.errors import UserError
from docjax.tasks.matching import splits_of
from docjax.types import Document

LEFT_OUT = ("abstract", "references")  # headings of sections
HELD_OUT = 0.1  # of the training pairs

Pairs = tuple[Int[np.ndarray, "b 2"], Bool[np.ndarray, " b"]]  # rows, similar


@dataclasses.dataclass(frozen=True, eq=False)
class Data:
    """Documents, and the pairs that train, that choose, and that are scored."""

    documents: Sequence[Document]
    train: Pairs
    held_out: Pairs
    scored: Pairs


def read(flags: argparse.Namespace) -> Data:
    """The data of the flags; prints what is left out.

    Raises:
      UserError: for bad documents or pairs, and pairs of unknown documents.
    """
    documents = without(jsonl(flags.documents))
    table = read_pairs(Path(flags.pairs))
    train, scored = splits_of(table, "validation")
    rows = {document.id: row for row, document in enumerate(documents)}
    read_ = partial(as_rows, flags.pairs, rows)
    pairs, similar = read_(table[train])
    order = np.random.default_rng(0).permutation(len(pairs))
    count = max(1, round(HELD_OUT * len(pairs)))
    held_out, train = order[:count], order[count:]
    for name, part in (("choosing", held_out), ("training", train)):
        check_kinds(name, similar[part])
    print(f"Pairs: {len(train)} train, {count} choose, {len(table[scored])} {scored}.")
    return Data(
        documents,
        (pairs[train], similar[train]),
        (pairs[held_out], similar[held_out]),
        read_(table[scored]),
    )


def without(documents: Iterable[Document]) -> list[Document]:
    """The documents without the sections LEFT_OUT; prints how many these are."""
    kept, sections, empty = [], 0, 0
    for document in documents:
        rest = tuple(s for s in document.sections if not is_left_out(s.heading))
        sections += len(document.sections) - len(rest)
        empty += not rest
        kept.append(dataclasses.replace(document, sections=rest))
    print(
        f"{sections} sections headed {' or '.join(LEFT_OUT)} are left out, and {empty} "
        f"of {len(kept)} documents have no other section."
    )
    return kept


def is_left_out(heading: str) -> bool:
    return " ".join(re.findall("[a-z]+", heading.lower())) in LEFT_OUT


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
