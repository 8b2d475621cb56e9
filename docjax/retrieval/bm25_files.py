"""BM25's files for a corpus of any size.

The files are those of `bm25s.BM25.save`, and so are the scores. Words are numbered in
the order in which they occur, so every process writes the same bytes.

A posting is a word of a document. The postings of a block of documents are sorted by
word and written to a temporary file. Then the blocks are merged, a range of words at a
time. Memory holds a block or a range, the vocabulary, and the bounds of each range in
each block: megabytes for a million documents of some pages, a gigabyte for ten.
"""

import dataclasses
import itertools
import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from docjax.data.documents import parts
from docjax.data.records import full_text
from docjax.retrieval import bm25
from docjax.storage import json_file
from docjax.storage.arrays import growing_array
from docjax.types import Document, Run

DOCUMENTS, CHARACTERS = 1 << 14, 1 << 24  # a block ends at either number
AT_ONCE = 1 << 19  # postings that are merged at once
DATA, INDICES = "data.csc.index.npy", "indices.csc.index.npy"  # as bm25s names them
POSTING = np.dtype([(name, "i4") for name in ("word", "document", "count", "length")])


class _Counts(NamedTuple):
    """What is known after the last block."""

    vocabulary: dict[str, int]
    documents: int
    words: int  # of all documents together
    frequencies: Int[np.ndarray, " v"]  # the number of documents with each word
    blocks: list[int]  # the number of postings in each


def write(documents: Iterable[Document], settings: bm25.Settings, folder: Path) -> int:
    """Writes the files of all documents, which `bm25.load` reads; returns their number.
    Raises UserError as `bm25.index`."""
    with tempfile.TemporaryFile(dir=folder) as file:
        counts = _write_blocks(documents, settings, file)
        bm25.check_words(counts.words, counts.documents, settings)
        _write_vocabulary(counts, settings, folder)
        idf = _idf(counts)
        with (
            growing_array(folder / DATA, np.float32) as append_scores,
            growing_array(folder / INDICES, np.int32) as append_documents,
        ):
            for part in _merged(file, counts):
                append_scores(_scores(part, idf, counts, settings))
                append_documents(part["document"])
    json_file.write(folder / bm25.SETTINGS, dataclasses.asdict(settings))
    return counts.documents


def search(
    documents: Iterable[Document],
    queries: Mapping[str, str],
    *,
    top: int = bm25.TOP,
    settings: bm25.Settings | None = None,
) -> Run:
    """The `top` documents of each query that share a word with it.

    The words lie in a temporary folder meanwhile, the documents' ids in memory. Raises
    UserError as `write`.
    """
    ids: list[str] = []

    def with_ids_kept() -> Iterator[Document]:
        for document in documents:
            ids.append(document.id)
            yield document

    with tempfile.TemporaryDirectory() as folder:
        write(with_ids_kept(), settings or bm25.Settings(), Path(folder))
        return bm25.load(Path(folder), ids).search(queries, top)


def _write_blocks(
    documents: Iterable[Document], settings: bm25.Settings, file: BinaryIO
) -> _Counts:
    """Writes the postings, each block sorted by word and document."""
    vocabulary: dict[str, int] = {}
    frequencies = np.zeros(0, np.int64)
    blocks, count, total = [], 0, 0
    for part in parts(documents, DOCUMENTS, CHARACTERS):
        words = settings.of_documents.words([full_text(each) for each in part])
        block = _block(words, vocabulary, count)
        file.write(block.tobytes())
        of_block = np.bincount(block["word"], minlength=len(vocabulary))
        of_block[: len(frequencies)] += frequencies
        frequencies = of_block
        blocks.append(len(block))
        count += len(part)
        total += int(block["count"].sum(dtype=np.int64))
    return _Counts(vocabulary, count, total, frequencies, blocks)


def _block(words: Any, vocabulary: dict[str, int], first: int) -> np.ndarray:
    """The postings of documents from number `first` on; new words get a number.

    words: of each document, as bm25s reads them.
    """
    lengths = np.array([len(of_document) for of_document in words.ids])
    every = itertools.chain.from_iterable(words.ids)
    numbers = np.fromiter(every, np.int64, lengths.sum())
    numbers = _renumbered(numbers, words.vocab, vocabulary)
    documents = np.repeat(np.arange(len(lengths)), lengths)
    pairs, counts = np.unique(numbers << 32 | documents, return_counts=True)
    block = np.empty(len(pairs), POSTING)
    documents = pairs & 0xFFFFFFFF
    block["word"], block["document"] = pairs >> 32, documents + first
    block["count"], block["length"] = counts, lengths[documents]
    return block


def _renumbered(
    numbers: Int[np.ndarray, " n"], names: Mapping[str, int], vocabulary: dict[str, int]
) -> Int[np.ndarray, " n"]:
    """Numbers of `names` become numbers of the vocabulary, which gets new words."""
    words = {number: word for word, number in names.items()}
    occurring, places = np.unique(numbers, return_index=True)
    new = np.zeros(len(names), np.int64)
    for number in occurring[np.argsort(places)].tolist():
        new[number] = vocabulary.setdefault(words[number], len(vocabulary))
    return new[numbers]


def _write_vocabulary(counts: _Counts, settings: bm25.Settings, folder: Path) -> None:
    """Writes all files of bm25s; those of the postings are still empty."""
    bm25s, _ = bm25.libraries()
    scorer = bm25s.BM25(k1=settings.k1, b=settings.b)
    scorer.vocab_dict, scorer.nonoccurrence_array = counts.vocabulary, None
    scorer.scores = {
        "data": np.zeros(0, np.float32),
        "indices": np.zeros(0, np.int32),
        "indptr": np.concatenate([[0], np.cumsum(counts.frequencies)]),
        "num_docs": counts.documents,
    }
    scorer.save(str(folder), show_progress=False)


def _merged(file: BinaryIO, counts: _Counts) -> Iterator[np.ndarray]:
    """All postings, sorted by word and document."""
    starts = list(itertools.accumulate(counts.blocks, initial=0))
    firsts = np.append(_ranges(counts.frequencies), len(counts.frequencies))
    bounds = [
        np.searchsorted(_read(file, *block)["word"], firsts).astype(np.int32)
        for block in itertools.pairwise(starts)
    ]
    for number, (first, end) in enumerate(itertools.pairwise(firsts.tolist())):
        postings = (
            _read(file, start + int(places[number]), start + int(places[number + 1]))
            for start, places in zip(starts, bounds)
        )
        if end - first == 1:
            yield from postings
        else:
            together = np.concatenate(list(postings))
            yield together[np.argsort(together["word"], kind="stable")]


def _read(file: BinaryIO, start: int, end: int) -> np.ndarray:
    """The postings from number `start` to `end`."""
    file.seek(start * POSTING.itemsize)
    return np.frombuffer(file.read((end - start) * POSTING.itemsize), POSTING)


def _ranges(frequencies: Int[np.ndarray, " v"]) -> Int[np.ndarray, " r"]:
    """The first word of each range: one frequent word, or words of 2 * AT_ONCE postings
    at most.
    """
    alone = frequencies >= AT_ONCE
    begins = np.diff(np.cumsum(frequencies) // AT_ONCE, prepend=-1) > 0
    begins |= alone
    begins[1:] |= alone[:-1]
    return np.flatnonzero(begins)


def _idf(counts: _Counts) -> Float[np.ndarray, " v"]:
    """The weight of each word, by Python's logarithm as in bm25s."""
    shares = (counts.documents - counts.frequencies + 0.5) / (counts.frequencies + 0.5)
    return np.array([math.log(1 + share) for share in shares.tolist()], np.float32)


def _scores(
    part: np.ndarray,
    idf: Float[np.ndarray, " v"],
    counts: _Counts,
    settings: bm25.Settings,
) -> Float[np.ndarray, " n"]:
    """The formula of `docjax.retrieval.bm25`, in the order of bm25s."""
    k1, b, mean = settings.k1, settings.b, counts.words / counts.documents
    lengths = k1 * ((1 - b) + b * part["length"] / mean)
    return idf[part["word"]] * (part["count"] / (lengths + part["count"]))
