"""What every task asks of the vectors and labels it is given."""

import numpy as np

from docjax.errors import UserError
from docjax.types import Embeddings


def check(train: Embeddings, test: Embeddings) -> None:
    """Raises UserError unless both parts hold finite vectors of one width, labelled."""
    for part, embeddings in (("train", train), ("test", test)):
        check_part(part, embeddings)
    widths = train.vectors.shape[1], test.vectors.shape[1]
    if widths[0] != widths[1]:
        raise UserError(
            f"train vectors have width {widths[0]}, test vectors {widths[1]}: "
            "encode both with the same model"
        )


def check_classes(part: str, labels: list[str]) -> None:
    """Raises UserError if all `labels` are the same."""
    if len(set(labels)) < 2:
        raise UserError(
            f"all {len(labels)} {part} documents have the label {labels[0]!r}: "
            "a task needs at least 2 classes; look at the split or leave the task out"
        )


def check_part(part: str, embeddings: Embeddings) -> None:
    """Raises UserError unless the vectors are finite, and one a label."""
    documents = len(embeddings.vectors)
    if documents == 0:
        raise UserError(
            f"there is no labelled {part} document: give the source documents with "
            f'"label" and "split": "{part}", or leave the task out'
        )
    if len(embeddings.labels) != documents:
        raise UserError(
            f"{documents} {part} vectors but {len(embeddings.labels)} labels: "
            "give one label a document"
        )
    broken = np.flatnonzero(~np.isfinite(embeddings.vectors).all(axis=1))
    if len(broken):
        raise UserError(
            f"{len(broken)} of {documents} {part} vectors are not finite (first: row "
            f"{broken[0]}): the model has diverged; lower optimizer.learning_rate or "
            "load an earlier checkpoint"
        )
