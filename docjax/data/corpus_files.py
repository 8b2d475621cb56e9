"""The files of a tokenised corpus: flat arrays, and one line per document.

    corpus.json      format, fingerprint, contents, summary; written last
    documents.jsonl  [id, label, split, words] of each document
    details.jsonl    [query, links, headings] of each document
    tokens.npy       the tokens of all units, one after the other
    units.npy        unit i is tokens[units[i]:units[i + 1]]
    sections.npy     the section of each unit
    documents.npy    document i has the units documents[i]:documents[i + 1]
    edges.npy        pairs of section numbers that the user connected
    edge_offsets.npy document i has the edges edge_offsets[i]:edge_offsets[i + 1]

`corpus.Corpus` says what the corpus means and when it is built again.
"""

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from docjax.data.records import full_text
from docjax.storage import json_file
from docjax.storage.arrays import growing_array, mapped
from docjax.types import Document, Units

FORMAT = 2
OFFSETS = ("units", "documents", "edge_offsets")
ARRAYS = ("tokens", "sections", "edges", *OFFSETS)


def write(
    folder: Path,
    pairs: Iterable[tuple[Document, Units]],
    vocabulary: int,
    fingerprint: str,
    contents: str | None,
) -> dict[str, Any]:
    """Writes documents and their tokens, one at a time; returns the summary."""
    kinds = dict.fromkeys(ARRAYS, np.int32) | dict.fromkeys(OFFSETS, np.int64)
    kinds["tokens"] = np.uint16 if vocabulary <= 1 << 16 else np.int32
    tally = Tally()
    with contextlib.ExitStack() as files:
        rows, details = (
            files.enter_context(open(folder / name, "w", encoding="utf-8"))
            for name in ("documents.jsonl", "details.jsonl")
        )
        append = {}
        for name, kind in kinds.items():
            shape = (2,) if name == "edges" else ()
            array = growing_array(folder / f"{name}.npy", kind, shape)
            append[name] = files.enter_context(array)
        for name in OFFSETS:
            append[name](np.zeros(1))
        for document, units in pairs:
            append["units"](tally.counts["tokens"] + units.offsets[1:])
            words = tally.add(document, units)
            append["documents"](np.array([tally.counts["units"]]))
            append["edge_offsets"](np.array([tally.counts["edges"]]))
            for name in ("tokens", "sections", "edges"):
                append[name](getattr(units, name))
            row = [document.id, document.label, document.split, words]
            rows.write(json.dumps(row) + "\n")
            headings = [section.heading for section in document.sections]
            detail = [document.query, document.links, headings]
            details.write(json.dumps(detail) + "\n")
    origin = {"fingerprint": fingerprint, "contents": contents}
    write_facts(folder, {"format": FORMAT, **origin, "summary": tally.summary()})
    return tally.summary()


class Tally:
    """Counts what a corpus holds, document by document."""

    def __init__(self) -> None:
        self.counts, self.labels, self.splits = Counter(), Counter(), Counter()

    def add(self, document: Document, units: Units) -> int:
        """Counts one document; returns its number of words."""
        words = len(full_text(document).split())
        sizes = {"units": len(units), "tokens": len(units.tokens)}
        self.counts.update(sizes, documents=1, words=words, edges=len(units.edges))
        self.labels.update(filter(None, [document.label]))
        self.splits.update(filter(None, [document.split]))
        longest = int(units.lengths.max())
        for name, number in (("most_units", len(units)), ("longest", longest)):
            self.counts[name] = max(self.counts[name], number)
        return words

    def summary(self) -> dict[str, Any]:
        """All counts as plain numbers; the most frequent label and split come first."""
        labels, splits = self.labels.most_common(), self.splits.most_common()
        return {**self.counts, "labels": dict(labels), "splits": dict(splits)}


def write_facts(folder: Path, facts: dict[str, Any]) -> None:
    json_file.write(folder / "corpus.json", facts)


def read_facts(folder: Path) -> dict[str, Any] | None:
    """The contents of corpus.json; None without a readable file of this format."""
    facts = json_file.read_if_there(folder / "corpus.json")
    return facts if facts and facts.get("format") == FORMAT else None


def read_arrays(folder: Path) -> dict[str, np.ndarray]:
    """The arrays, mapped into memory and read as needed."""
    return {name: mapped(folder / f"{name}.npy") for name in ARRAYS}


def read_rows(folder: Path) -> tuple[list, list, list, np.ndarray]:
    """Ids, labels, splits and words (int64) of all documents."""
    columns: tuple[list, list, list, list] = ([], [], [], [])
    with open(folder / "documents.jsonl", encoding="utf-8") as lines:
        for line in lines:
            name, label, split, words = json.loads(line)
            # Interned: memory holds each of the few labels and splits once.
            label, split = (text and sys.intern(text) for text in (label, split))
            for column, value in zip(columns, (name, label, split, words), strict=True):
                column.append(value)
    return *columns[:3], np.array(columns[3], np.int64)


def read_details(folder: Path) -> Iterator[tuple[list[str], list[str]]]:
    """The links and the headings of each document."""
    with open(folder / "details.jsonl", encoding="utf-8") as lines:
        for line in lines:
            _, links, headings = json.loads(line)
            yield links, headings


def fits(arrays: dict[str, np.ndarray], documents: int) -> bool:
    """Whether the arrays form one complete corpus of `documents` documents."""
    last = {name: int(arrays[name][-1]) for name in OFFSETS}
    return (
        len(arrays["documents"]) == len(arrays["edge_offsets"]) == documents + 1
        and len(arrays["units"]) == last["documents"] + 1
        and len(arrays["sections"]) == last["documents"]
        and len(arrays["tokens"]) == last["units"]
        and len(arrays["edges"]) == last["edge_offsets"]
    )
