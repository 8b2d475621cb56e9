"""Are two documents similar? By their cosine, against a threshold."""

import numpy as np
from jaxtyping import Bool, Float
from sklearn.metrics import accuracy_score, f1_score

from docjax.errors import UserError

THRESHOLDS = np.round(np.arange(-1, 1, 0.01), 2)  # CoLDE: on a grid of 0.01


def matching(
    tuning: tuple[Float[np.ndarray, " a"], Bool[np.ndarray, " a"]],
    test: tuple[Float[np.ndarray, " e"], Bool[np.ndarray, " e"]],
) -> dict[str, float]:
    """`f1` and `accuracy` of the test pairs, in [0, 1], and the `threshold`.

    Pairs above the threshold count as similar. It is the one with the best F1 on the
    tuning pairs (CoLDE, section 4).

    Args:
      tuning, test: the cosine of each pair, and whether it is similar.

    Raises:
      UserError: if a part is empty or all its pairs have one label.
    """
    for name, (_, similar) in (("tuning", tuning), ("test", test)):
        if similar.all() or not similar.any():
            raise UserError(
                f"{len(similar)} {name} pairs, {int(similar.sum())} of them similar: "
                "both kinds are needed"
            )
    cosines, similar = tuning
    scores = [_f1(similar, cosines > threshold) for threshold in THRESHOLDS]
    best = np.flatnonzero(np.array(scores) == max(scores))
    threshold = float(THRESHOLDS[best[len(best) // 2]])  # the middle of a plateau
    cosines, similar = test
    found = cosines > threshold
    return {
        "f1": _f1(similar, found),
        "accuracy": float(accuracy_score(similar, found)),
        "threshold": threshold,
    }


def _f1(similar: Bool[np.ndarray, " e"], found: Bool[np.ndarray, " e"]) -> float:
    return float(f1_score(similar, found, zero_division=0))
