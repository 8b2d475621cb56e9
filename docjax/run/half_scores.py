"""Halves of documents: from one half a model finds the other half, or its subject."""

import numpy as np
from jaxtyping import Float, Int

from docjax.types import Units

NEAREST = 10  # documents that a half finds
MANY = 4  # units of a document whose halves are every other unit


def halves(units: Units, room: int) -> tuple[Units, Units]:
    """Every other unit, and the rest; fewer than MANY units are cut in the middle.

    room: tokens of a segment, so that no half has a unit that does not fit.
    """
    numbers = np.arange(len(units))
    if len(units) >= MANY:
        return units.take(numbers[::2]), units.take(numbers[1::2])
    middle = len(units.tokens) // 2
    parts = units.tokens[:middle], units.tokens[middle:]
    first, second = (Units(part, *_pieces(len(part), room)) for part in parts)
    return first, second


def _pieces(
    tokens: int, room: int
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " u"], Int[np.ndarray, "e 2"]]:
    """Offsets, sections and edges of consecutive units of at most `room` tokens."""
    starts = np.arange(0, max(tokens, 1), room)
    sections = np.zeros(len(starts), np.int32)
    return np.append(starts, tokens), sections, np.zeros((0, 2), np.int32)


def reciprocal_ranks(
    halves: Float[np.ndarray, "b2 d"], others: Float[np.ndarray, "m d"]
) -> Float[np.ndarray, " b"]:
    """1 / the rank of a document's other half among `others`, mean of both directions.

    Args:
      halves: unit vectors of all first halves, then of all second halves.
      others: unit vectors of other documents.
    """
    own = (halves * np.roll(halves, len(halves) // 2, axis=0)).sum(1, keepdims=True)
    ranks = 1 + (halves @ others.T > own).sum(1)
    return (1 / ranks).reshape(2, -1).mean(0)


def by_deviation(similarities: Float[np.ndarray, "b m"]) -> Float[np.ndarray, "b m"]:
    """Similarities of each row in standard deviations from the row's mean."""
    centred = similarities - similarities.mean(1, keepdims=True)
    return centred / np.maximum(centred.std(1, keepdims=True), 1e-6)


def confirmed(
    found: Float[np.ndarray, "b2 m"], scores: Float[np.ndarray, "b2 m"]
) -> Float[np.ndarray, " b"]:
    """The mean score of the NEAREST documents by `found`, mean of both halves.

    Args:
      found: similarities of all first halves, then of all second halves.
      scores: how well the other half confirms each document.
    """
    count = min(NEAREST, found.shape[1])
    nearest = np.argsort(-found, axis=1, kind="stable")[:, :count]
    means = np.take_along_axis(scores, nearest, axis=1).mean(1)
    return means.reshape(2, -1).mean(0)
