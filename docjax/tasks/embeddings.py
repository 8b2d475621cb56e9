"""What several tasks share: checks of vectors and labels, samples, external vectors."""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
import scipy.sparse

from docjax.errors import UserError
from docjax.types import Document, Embeddings, TaskData

MANY = 100  # train documents from which on labels of one document each are refused


class NoLabels(UserError):
    """A part has too few labelled documents. A run continues without the task."""


@dataclasses.dataclass(frozen=True, eq=False)
class LabelledVectors:
    """Data for tasks that read only labels and vectors, made outside docjax."""

    parts: Mapping[str, Embeddings]
    similarity: str = "cosine"

    def labels(self, part: str) -> list[str]:
        return self.parts[part].labels

    def labelled(self, part: str) -> Embeddings:
        return self.parts[part]

    def of_task(self, name: str) -> "LabelledVectors":
        return self

    def documents(self, part: Any, *_: Any) -> NoReturn:
        """Raises UserError: there are only vectors and labels, nothing to encode."""
        raise UserError("the task needs documents, here are only vectors and labels")

    sample = missing = vectors = shuffled = queries = encode = keep = documents
    token_attention = masked_tokens = documents


def sampled(
    read: Callable[[], Iterator[Document]], part: str, most: int | None, seed: int
) -> list[Document]:
    """At most `most` documents of a part, in their order; None: all.

    read: begins again with the part's first document.

    Raises UserError if there is none, and for `most` below 1.
    """
    if most is not None and most < 1:
        raise UserError(f"most={most} documents: give 1 or more, or None for all")
    count = sum(1 for _ in read())
    if not count:
        raise UserError(f"there is no {part} document to analyse: check the splits")
    if most is None or most >= count:
        return list(read())
    chosen = np.random.default_rng(seed).choice(count, most, replace=False)
    rows = set(chosen.tolist())
    return [each for row, each in enumerate(read()) if row in rows]


def check_labels(data: TaskData, *parts: str) -> None:
    """Raises NoLabels for a part without labelled documents; nothing is encoded."""
    for part in parts:
        if not data.labels(part):
            _refuse(part)


def check_train(data: TaskData, part: str) -> None:
    """Raises NoLabels unless both parts have labels, and those of train name classes."""
    check_labels(data, "train", part)
    check_classes("train", data.labels("train"))
    check_shared(data, part)


def check_shared(data: TaskData, part: str) -> None:
    """Raises NoLabels for labels such as titles, which hardly any documents share.

    These are more than half as many labels as train documents, of which there are MANY
    or more, and fewer than half of the part's documents have a label of train. So one
    train document of each class is enough if the part has the same classes.
    """
    labels, scored = data.labels("train"), data.labels(part)
    classes = set(labels)
    known = sum(label in classes for label in scored)
    many = len(labels) >= MANY and 2 * len(classes) > len(labels)
    if many and 2 * known < len(scored):
        raise NoLabels(
            f"{len(classes):,} different labels among {len(labels):,} train documents, "
            f"and {known:,} of {len(scored):,} {part} documents have one of these: give "
            "labels that name classes, with several documents of each, or leave the "
            "task out"
        )


def check(train: Embeddings, test: Embeddings) -> None:
    """Raises UserError for missing labels, non-finite vectors or different widths."""
    for part, embeddings in (("train", train), ("test", test)):
        check_part(part, embeddings)
    widths = train.vectors.shape[1], test.vectors.shape[1]
    if widths[0] != widths[1]:
        raise UserError(
            f"train vectors have width {widths[0]}, test vectors {widths[1]}: "
            "encode both with the same model"
        )


def check_classes(part: str, labels: list[str]) -> None:
    """Raises NoLabels if all `labels` are the same."""
    if len(set(labels)) < 2:
        raise NoLabels(
            f"all {len(labels)} {part} documents have the label {labels[0]!r}: "
            "a task needs at least 2 classes; check the split or leave the task out"
        )


def check_dense(embeddings: Embeddings) -> None:
    """Raises UserError for a sparse matrix, such as that of TF-IDF."""
    if scipy.sparse.issparse(embeddings.vectors):
        raise UserError(
            f"{embeddings.vectors.shape[1]:,} sparse numbers: this task reads dense "
            "vectors; reduce them first, or take classification.Linear"
        )


def check_known(data: TaskData, needed: Collection[str]) -> None:
    """Raises UserError if there is no document of one of these ids."""
    missing = data.missing(needed)
    if missing:
        raise UserError(
            f"{len(missing)} of {len(needed)} documents of the pairs are missing, "
            f"{missing[0]!r} is the first: give the source that holds them (docjax "
            "evaluate: --documents)"
        )


def check_part(part: str, embeddings: Embeddings) -> None:
    """Raises UserError unless the vectors are finite, and as many as the labels."""
    documents = embeddings.vectors.shape[0]
    if documents == 0:
        _refuse(part)
    if len(embeddings.labels) != documents:
        raise UserError(
            f"{documents} {part} vectors but {len(embeddings.labels)} labels: "
            "give each document one label"
        )
    if scipy.sparse.issparse(embeddings.vectors):
        return
    broken = np.flatnonzero(~np.isfinite(embeddings.vectors).all(axis=1))
    if len(broken):
        raise UserError(
            f"{len(broken)} of {documents} {part} vectors are not finite (first: row "
            f"{broken[0]}): the model has diverged; lower optimizer.learning_rate or "
            "load an earlier checkpoint"
        )


def _refuse(part: str) -> NoReturn:
    raise NoLabels(
        f"there is no labelled {part} document: give the source documents with "
        f'"label" and "split": "{part}", or leave the task out'
    )
