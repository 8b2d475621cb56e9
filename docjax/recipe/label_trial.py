"""Can the labels of training documents be read off the vectors, and no worse than before?"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from docjax.recipe.half_scores import NEAREST, is_worse

FEW = NEAREST // 2 + 1  # with as many documents, half of NEAREST at most have the label
CERTAIN = 3  # standard errors by which neighbours' labels must be better than chance


class Recall(NamedTuple):
    """The share of a label's documents that are voted right, the mean over labels.

    By chance it is `chance`, with the standard error `error`.
    """

    mean: float
    chance: float
    error: float

    def beats_chance(self) -> bool:
        return self.mean > self.chance + CERTAIN * self.error


def by_labels(
    labels: Int[np.ndarray, " m"],
    vectors: Mapping[str, Float[np.ndarray, "m d"]],
    name: str,
    when: Mapping[str, str],
    before: str = "start",
    errors: float = 1,
) -> tuple[str, dict[str, float]]:
    """Why the labels speak against the vectors `name`, or "", and metrics.

    Labels of FEW documents or fewer are left out: even in perfect clusters half of the
    nearest neighbours have another label. Two larger labels are needed.

    Args:
      labels: -1 without a label.
      vectors: the documents' unit vectors, of `before` and of `name`.
      when: how the reason calls the vectors.
      errors: the standard errors by which `name` is worse than `before`.
    """
    counts = np.bincount(labels[labels >= 0])
    has_label = np.isin(labels, np.flatnonzero(counts > FEW))
    if (counts > FEW).sum() < 2 or has_label.sum() < 5 * NEAREST:
        return "", {}
    known = labels[has_label]
    votes = {key: _votes(each[has_label], known) for key, each in vectors.items()}
    right = {key: (each == known).astype(float) for key, each in votes.items()}
    accuracy = {key: float(each.mean()) for key, each in right.items()}
    metrics = {f"judgement/{key}_knn": value for key, value in accuracy.items()}
    recall = {key: _recall(each, known) for key, each in votes.items()}
    if not any(each.beats_chance() for each in recall.values()):
        start, after = recall[before], recall[name]
        reason = (
            f"the labels cannot be read off the texts: the nearest neighbours are right "
            f"for {start.mean:.3f} of a label's documents {when[before]} and "
            f"{after.mean:.3f} {when[name]} (mean over labels), by chance for "
            f"{start.chance:.3f}"
        )
        return reason, metrics
    if is_worse(right[name] - right[before], errors):
        shown = (
            f"{accuracy[before]:.3f} {when[before]}, {accuracy[name]:.3f} {when[name]}"
        )
        return f"the nearest neighbours' labels are right for {shown}", metrics
    return "", metrics


def _recall(votes: Int[np.ndarray, " b"], labels: Int[np.ndarray, " b"]) -> Recall:
    """The recall of labels that are voted for.

    The mean over documents would be high for votes that only know the frequent label.
    A label has a share of the votes by chance. Its estimate is the centre of Wilson's
    interval, so that a single vote that happens to be right proves nothing.
    """
    names, counts = np.unique(labels, return_counts=True)
    recalls = [(votes[labels == name] == name).mean() for name in names]
    given = np.array([(votes == name).sum() for name in names])
    shares = (given + CERTAIN**2 / 2) / (len(votes) + CERTAIN**2)
    error = (shares * (1 - shares) / counts).sum() ** 0.5 / len(names)
    return Recall(float(np.mean(recalls)), 1 / len(names), float(error))


def _votes(
    vectors: Float[np.ndarray, "b d"], labels: Int[np.ndarray, " b"]
) -> Int[np.ndarray, " b"]:
    """The most frequent label of the NEAREST other documents."""
    votes = np.empty(len(labels), np.int64)
    classes = int(labels.max()) + 1
    for first in range(0, len(vectors), 1024):
        similarities = vectors[first : first + 1024] @ vectors.T
        own = np.arange(first, first + len(similarities))
        similarities[np.arange(len(own)), own] = -np.inf
        nearest = np.argpartition(-similarities, NEAREST, axis=1)[:, :NEAREST]
        for row, columns in zip(own.tolist(), nearest, strict=True):
            counts = np.bincount(labels[columns], minlength=classes)
            votes[row] = counts.argmax()
    return votes
