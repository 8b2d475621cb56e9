"""Do published precision, recall, F1 and accuracy of pairs fit together?"""

import math
from typing import NamedTuple

# Of F1, if figures have four digits: at most twice the rounding of precision and recall,
# and its own.
TOLERANCE = 1.5e-4


class Consistency(NamedTuple):
    """What four figures say of each other; NaN where they say nothing.

    Attributes:
      similar: the share of similar pairs among the test pairs. It follows from
        precision, recall and accuracy; outside [0, 1] no test pairs have such figures.
      exchanged: the same share if precision and recall were exchanged.
      f1: the F1 of precision and recall, in whichever order.
      fits: whether the F1 that was given is that one.
    """

    similar: float
    exchanged: float
    f1: float
    fits: bool


def consistency(
    precision: float, recall: float, f1: float, accuracy: float
) -> Consistency:
    """Checks four figures in [0, 1] against each other.

    CoLDE's released code exchanges precision and recall and averages F1 over batches.
    Test pairs of which half are similar should give a share of 0.5.

    Raises:
      ValueError: for a figure outside [0, 1].
    """
    figures = precision, recall, f1, accuracy
    if not all(0 <= figure <= 1 for figure in figures):
        raise ValueError(f"{figures}: give fractions from 0 to 1, not percent")
    total = precision + recall
    expected = 2 * precision * recall / total if total else 0.0
    return Consistency(
        similar=_share(precision, recall, accuracy),
        exchanged=_share(recall, precision, accuracy),
        f1=expected,
        fits=abs(f1 - expected) <= TOLERANCE,
    )


def _share(precision: float, recall: float, accuracy: float) -> float:
    """The share s of similar pairs: 1 - accuracy is the share of wrong pairs.

    Of all pairs, s (1 - recall) are missed, and s recall (1 / precision - 1) are called
    similar though they are not.
    """
    if not precision:
        return math.nan
    wrong = 1 - recall + recall * (1 / precision - 1)
    return (1 - accuracy) / wrong if wrong > 0 else math.nan
