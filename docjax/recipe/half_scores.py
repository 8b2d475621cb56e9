"""What excerpts from the two halves of a document say of a model.

From one excerpt a model finds the other excerpt, and documents on its subject.
"""

import numpy as np
from jaxtyping import Float

from docjax.types import Units

NEAREST = 10  # documents that an excerpt finds
EXCERPT = 128  # tokens; halves of long documents are found by every model
ROUNDING = 1e-6  # sums in another order change a cosine by less than this


def excerpts(units: Units, most: int = EXCERPT) -> tuple[Units, Units]:
    """The middle of the first half and of the second half, at most `most` tokens each.

    Each is one unit.
    """
    middle = len(units.tokens) // 2
    parts = units.tokens[:middle], units.tokens[middle:]
    first, second = (_middle(part, most) for part in parts)
    return first, second


def _middle(tokens: np.ndarray, most: int) -> Units:
    start = max(len(tokens) - most, 0) // 2
    tokens = tokens[start : start + most]
    edges = np.zeros((0, 2), np.int32)
    return Units(tokens, np.array([0, len(tokens)]), np.zeros(1, np.int32), edges)


def reciprocal_ranks(
    both: Float[np.ndarray, "b2 d"], others: Float[np.ndarray, "m d"]
) -> Float[np.ndarray, " b"]:
    """1 / the rank of the other excerpt among other documents, mean of both directions.

    A document that is as similar as the other excerpt, to ROUNDING, counts one half.

    Args:
      both: unit vectors of all first excerpts, then of all second excerpts.
      others: unit vectors of other documents.
    """
    own = (both * np.roll(both, len(both) // 2, axis=0)).sum(1, keepdims=True)
    above = both @ others.T - own
    equal = (np.abs(above) <= ROUNDING).sum(1)
    ranks = 1 + (above > ROUNDING).sum(1) + equal / 2
    return (1 / ranks).reshape(2, -1).mean(0)


def by_deviation(similarities: Float[np.ndarray, "b m"]) -> Float[np.ndarray, "b m"]:
    """Similarities of each row in standard deviations from the row's mean.

    A row that deviates by rounding alone has zeros.
    """
    centred = similarities - similarities.mean(1, keepdims=True)
    deviations = centred.std(1, keepdims=True)
    known = np.maximum(deviations, ROUNDING)
    return np.where(deviations > ROUNDING, centred / known, 0)


def confirmed(
    similarities: Float[np.ndarray, "b2 m"], scores: Float[np.ndarray, "b2 m"]
) -> Float[np.ndarray, " b"]:
    """The mean score of the NEAREST documents, mean of both excerpts.

    Args:
      similarities: of all first excerpts, then of all second excerpts, to documents.
      scores: how well the other excerpt confirms each document.
    """
    count = min(NEAREST, similarities.shape[1])
    nearest = np.argsort(-similarities, axis=1, kind="stable")[:, :count]
    means = np.take_along_axis(scores, nearest, axis=1).mean(1)
    return means.reshape(2, -1).mean(0)


def is_worse(differences: Float[np.ndarray, " b"], errors: float = 1) -> bool:
    """Whether the mean is below 0 by more than so many standard errors."""
    mean, error = mean_and_error(differences)
    return mean < -errors * error


def mean_and_error(differences: Float[np.ndarray, " b"]) -> tuple[float, float]:
    """The mean, and its standard error."""
    error = differences.std(ddof=1) / len(differences) ** 0.5
    return float(differences.mean()), float(error)
