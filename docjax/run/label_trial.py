"""Can the labels of training documents be read off the vectors, and no worse than before?"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float, Int

from docjax.run.half_scores import NEAREST, is_worse

FEW = NEAREST // 2 + 1  # with as many documents, half of NEAREST at most have the label
CERTAIN = 3  # standard errors by which neighbours' labels must be better than chance


def by_labels(
    labels: Int[np.ndarray, " m"],
    vectors: Mapping[str, Float[np.ndarray, "m d"]],
    name: str,
    when: str,
) -> tuple[str, dict[str, float]]:
    """Why the labels speak against the vectors `name`, or "", and metrics.

    Labels of FEW documents or fewer are left out: even in perfect clusters half of the
    nearest neighbours have another label. Two larger labels are needed.

    Args:
      labels: -1 without a label.
      vectors: the documents' unit vectors, of "start" and of `name`.
      when: how the reason calls the vectors `name`.
    """
    counts = np.bincount(labels[labels >= 0])
    has_label = np.isin(labels, np.flatnonzero(counts > FEW))
    if (counts > FEW).sum() < 2 or has_label.sum() < 5 * NEAREST:
        return "", {}
    right = {
        key: _neighbours_agree(each[has_label], labels[has_label])
        for key, each in vectors.items()
    }
    count = len(right["start"])
    accuracy = {key: float(each.mean()) for key, each in right.items()}
    metrics = {f"judgement/{key}_knn": value for key, value in accuracy.items()}
    most = counts.max() / count
    error = (most * (1 - most) / count) ** 0.5
    shown = f"{accuracy['start']:.3f} at the start, {accuracy[name]:.3f} {when}"
    if max(accuracy.values()) < most + CERTAIN * error:
        reason = (
            f"the labels cannot be read off the texts: the nearest neighbours are "
            f"right for {shown}, the most frequent label for {most:.3f}"
        )
        return reason, metrics
    if is_worse(right[name].astype(float) - right["start"]):
        return f"the nearest neighbours' labels are right for {shown}", metrics
    return "", metrics


def _neighbours_agree(
    vectors: Float[np.ndarray, "b d"], labels: Int[np.ndarray, " b"]
) -> Bool[np.ndarray, " b"]:
    """Whether the most frequent label of the NEAREST other documents is right."""
    right = np.empty(len(labels), bool)
    classes = int(labels.max()) + 1
    for first in range(0, len(vectors), 1024):
        similarities = vectors[first : first + 1024] @ vectors.T
        own = np.arange(first, first + len(similarities))
        similarities[np.arange(len(own)), own] = -np.inf
        nearest = np.argpartition(-similarities, NEAREST, axis=1)[:, :NEAREST]
        for row, columns in zip(own.tolist(), nearest, strict=True):
            votes = np.bincount(labels[columns], minlength=classes)
            right[row] = votes.argmax() == labels[row]
    return right
