"""Makes train, validation and test parts, and finds the documents of a part."""

import dataclasses
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Int

from docjax.errors import UserError
from docjax.types import Document

# The first split that exists chooses thresholds and weights.
CHOOSING = ("dev", "validation", "valid", "val")
TUNING = (*CHOOSING, "train")
TEST = 0.2  # the share of the test part
NO_SPLIT = "no labelled document has a split: a fifth of each label is the test"


def holdout(
    documents: Iterable[Document] | Callable[[], Iterable[Document]],
    test: float = TEST,
    validation: float = 0.0,
    by: str | None = None,
    of: str | None = None,
    seed: int = 0,
) -> Iterator[Document]:
    """The documents; those without a split get "train", "validation" or "test".

    Every label is divided by the same shares. Documents with an equal `metadata[by]`
    (chapters of a book, threads) stay together. The parts depend on ids, labels and
    `seed`, not on the order of the documents.

    Args:
      documents: a function is called twice, and memory holds only ids; otherwise
        memory holds all documents.
      of: the split to divide; None: the documents without a split.

    Raises:
      UserError: if the shares are impossible, no document is in the split `of`, or a
        document has no `metadata[by]`.
    """
    if not (0 <= test and 0 <= validation and test + validation < 1):
        raise UserError(
            f"test={test} and validation={validation}: give shares of at least 0 whose "
            "sum is below 1"
        )
    read = documents if callable(documents) else list(documents).__iter__
    groups: defaultdict[str, Counter] = defaultdict(Counter)
    for document in read():
        if document.split == of:
            groups[_group(document, by)][document.label or ""] += 1
    if of is not None and not groups:
        raise UserError(f"of={of!r}: no document is in that split; name another")
    splits = _assign(groups, test, validation, seed)
    for document in read():
        if document.split == of:
            split = splits[_group(document, by)]
            document = dataclasses.replace(document, split=split)
        yield document


def parts_of_labels(documents: Iterable[Document]) -> dict[str, str]:
    """The split of each labelled document, by id: a fifth of each label is the test, as
    `holdout` divides. Empty without labels, or if a labelled document has a split.
    """
    labels: defaultdict[str, Counter] = defaultdict(Counter)
    for document in documents:
        if document.label is not None:
            if document.split is not None:
                return {}
            labels[document.id][document.label] += 1
    return _assign(labels, TEST, 0.0, 0)


def _group(document: Document, by: str | None) -> str:
    if by is None:
        return document.id
    if by not in document.metadata:
        raise UserError(
            f"by={by!r}: document {document.id!r} has no such metadata; "
            f"it has {', '.join(map(str, document.metadata)) or 'none'}"
        )
    return str(document.metadata[by])


def _assign(
    groups: dict[str, Counter], test: float, validation: float, seed: int
) -> dict[str, str]:
    """The split of each group; a group counts for its most frequent label."""
    strata: defaultdict[str, list[str]] = defaultdict(list)
    for group, labels in groups.items():
        strata[min(labels, key=lambda label: (-labels[label], label))].append(group)
    splits = {}
    for members in strata.values():
        total, before = sum(groups[group].total() for group in members), 0
        for group in sorted(members, key=lambda group: _hash(group, seed)):
            size = groups[group].total()
            place = (before + size / 2) / total
            later = "validation" if place < test + validation else "train"
            splits[group] = "test" if place < test else later
            before += size
    return splits


def _hash(group: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\0{group}".encode("utf-8", "replace")).digest()


def evenly(array: np.ndarray, most: int) -> np.ndarray:
    """The array, or each n-th of its rows, with the least n that gives at most `most`."""
    return array[:: max(-(-len(array) // most), 1)]


def spread(array: np.ndarray, most: int) -> np.ndarray:
    """The array, or exactly `most` of its rows, evenly spread."""
    count = min(most, len(array))
    return array[np.arange(count) * len(array) // max(count, 1)]


def rows(
    splits: Sequence[str | None], name: str | None, with_none: bool = False
) -> Int[np.ndarray, " b"]:
    """The numbers of the documents in the split `name`; no documents if it is None.

    `with_none` adds documents without a split.
    """
    wanted = {name} if name is not None else set()
    if with_none:
        wanted.add(None)
    return np.flatnonzero([split in wanted for split in splits])
