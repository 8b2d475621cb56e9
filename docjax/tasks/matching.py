"""Are two documents similar? By their cosine, against a threshold."""

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float
from sklearn.preprocessing import normalize

from docjax.data.pairs import (
    Pair,
    check_kinds,
    held_out,
    linked_pairs,
    read_pairs,
    splits_of,
)
from docjax.data.shuffled import PIECES
from docjax.errors import UserError
from docjax.tasks.embeddings import check_known, check_part
from docjax.tasks.task import TaskDefaults, option, renamed
from docjax.types import Embeddings, Rows, Table, TaskData

THRESHOLDS = np.round(np.arange(-1, 1, 0.01), 2)  # CoLDE: on a grid of 0.01
FIXED = (0.25, 0.5, 0.75)  # those of CoLDE's released code
COLUMNS = {"P": "precision", "R": "recall", "F1": "f1", "Acc": "accuracy"}

Vectors = Callable[[Sequence[str]], Float[np.ndarray, "c d"]]  # by id

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Matching(TaskDefaults):
    """`matching` of the pairs in a table, or of documents with a link between them.

    Attributes:
      path: a table of `split, source, target, label` (`docjax.data.pairs`) with ids of
        documents. For the part "test", the pairs of the split "test" are scored, and
        the threshold comes from the first existing split of dev, validation, valid, val
        and train. For "validation", the first of these except train is scored, and the
        threshold comes from train; so also for "test" without a split "test". In a
        table of two splits that is the part of train that training does not read
        (`docjax.data.pairs.held_out`); in one of three, "validation" has a threshold
        of trained pairs, which is too high. None:
        `linked_pairs` makes pairs from links within the scored part; the threshold comes
        from links within the validation part, or else within the training part.
      seed: the seed of the random pairs that `linked_pairs` adds, and of `shuffled`.
      shuffled: "sections" or "segments": the scored documents have these in random
        order, while the threshold comes from documents as they are (CoLDE's study of
        robustness).
    """

    command = "matching"
    reads = "pairs"
    curves = ("f1",)

    path: str | None = None
    seed: int = 0
    shuffled: str | None = option(
        None,
        "score documents with their sections or segments in random order",
        choices=PIECES,
    )

    def __post_init__(self) -> None:
        if self.shuffled not in (None, *PIECES):
            raise UserError(
                f"shuffled {self.shuffled!r}: give one of {', '.join(PIECES)}, or "
                "leave it out"
            )
        if self.seed < 0:
            raise UserError(f"seed {self.seed}: give 0 or more")

    def check(self, data: TaskData, part: str) -> None:
        parts = self.pairs(data, part)
        for name, pairs in zip(("tuning", part), parts, strict=True):
            check_kinds(name, np.array([pair.similar for pair in pairs], bool))
        needed = {name for pairs in parts for pair in pairs for name in pair[:2]}
        check_known(data, needed)
        if self.path is not None:
            _warn(read_pairs(Path(self.path)), part)

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        tuning, scored = self.pairs(data, part)
        vectors = data.vectors
        if self.shuffled is not None:
            vectors = lambda ids: data.shuffled(ids, self.shuffled, self.seed)
        return matching(_cosines(data.vectors, tuning), _cosines(vectors, scored))

    @property
    def on_baselines(self) -> bool:
        """Not with documents in another order: these would be read once more."""
        return self.shuffled is None

    def is_score(self, metric: str) -> bool:
        """Two measures at the chosen threshold; a table of its own has the others."""
        return metric in ("f1", "accuracy")

    def similar(self, data: TaskData, part: str) -> list[tuple[str, str]]:
        _, scored = self.pairs(data, part)
        return [pair[:2] for pair in scored if pair.similar]

    def tables(self, measured: Rows, published: Rows) -> list[Table]:
        rows = {}
        for name, metrics in {**measured, **published}.items():
            rows |= _at_thresholds(name, metrics)
        note = (
            "Precision, recall, F1 and accuracy of all pairs together. Pairs whose "
            "cosine is above the threshold count as similar. Other pairs chose the "
            "first threshold of each model, by F1; the fixed thresholds are those of "
            "CoLDE's released code."
        )
        title, names = "Pairs of documents", tuple(COLUMNS)
        return [Table(title, rows, names, note, corner="pairs", decimals=4)]

    def pairs(self, data: TaskData, part: str) -> tuple[list[Pair], list[Pair]]:
        """The pairs for choosing the threshold, and the pairs to score."""
        if self.path is not None:
            pairs = read_pairs(Path(self.path))
            tuning, scored = splits_of(pairs, part)
            chosen = held_out(pairs)[1] if tuning == "train" else []
            return chosen or pairs[tuning], pairs[scored]
        linked = lambda name: linked_pairs(data.documents(name), self.seed)
        names = [name for name in ("validation", "train") if name != part]
        tuning = next(filter(None, map(linked, names)), [])
        scored = linked(part)
        for name, pairs in ((part, scored), (" or ".join(names), tuning)):
            if not pairs:
                raise UserError(
                    f"no two {name} documents have a link between them: give the "
                    'source documents "links" and splits (--config.holdout makes '
                    "splits), or the task a table of pairs (path)"
                )
        return tuning, scored


def _at_thresholds(
    name: str, metrics: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Rows of the measures that there are, one a threshold.

    Published measures have no threshold: these are one row.
    """
    chosen = name
    if "threshold" in metrics:
        chosen = f"{name}, above {metrics['threshold']:.2f} (chosen)"
    ends = {chosen: ""} | {f"{name}, above {fixed}": f"@{fixed}" for fixed in FIXED}
    rows = {}
    for row, end in ends.items():
        names = {column: f"{measure}{end}" for column, measure in COLUMNS.items()}
        rows |= renamed({row: metrics}, names)
    return rows


def _warn(pairs: Mapping[str, list[Pair]], part: str) -> None:
    """Warns if other pairs than those of "test" are scored, and of unused splits."""
    used = splits_of(pairs, part)
    if part == "test" and used[1] != part:
        logger.warning(
            "there are no test pairs: those of %r are scored, which also choose the "
            "checkpoint of a run that keeps the best",
            used[1],
        )
    for name in used:
        again = len(pairs[name]) - len({frozenset(pair[:2]) for pair in pairs[name]})
        if again:
            text = "%d of %d pairs of %r stand in the table before: each counts again"
            logger.warning(text, again, len(pairs[name]), name)
    unused = {name: len(rows) for name, rows in pairs.items() if name not in used}
    if unused:
        logger.warning("pairs of these splits are not used: %s", unused)


def matching(
    tuning: tuple[Float[np.ndarray, " a"], Bool[np.ndarray, " a"]],
    test: tuple[Float[np.ndarray, " e"], Bool[np.ndarray, " e"]],
) -> dict[str, float]:
    """`precision`, `recall`, `f1` and `accuracy` of the test pairs, and `threshold`.

    Pairs above the threshold count as similar. The threshold has the best F1 on the
    tuning pairs. The same four at a fixed threshold, such as `f1@0.5`, stand beside
    (CoLDE, section 4, which leaves the threshold open).

    tuning, test: the cosine of each pair, and whether it is similar.

    Raises UserError if a part is empty or all its pairs have one label.
    """
    for name, (_, similar) in (("tuning", tuning), ("test", test)):
        check_kinds(name, similar)
    cosines, similar = tuning
    scores = [measures(similar, cosines > threshold)["f1"] for threshold in THRESHOLDS]
    best = np.flatnonzero(np.array(scores) == max(scores))
    threshold = float(THRESHOLDS[best[len(best) // 2]])  # the middle of a plateau
    cosines, similar = test
    found = measures(similar, cosines > threshold) | {"threshold": threshold}
    for fixed in FIXED:
        at_fixed = measures(similar, cosines > fixed)
        found |= {f"{name}@{fixed}": value for name, value in at_fixed.items()}
    return found


def measures(
    similar: Bool[np.ndarray, " e"], predicted: Bool[np.ndarray, " e"]
) -> dict[str, float]:
    """`precision`, `recall`, `f1` and `accuracy` of all pairs together, in [0, 1].

    Similar pairs count as positive. A share of no pairs is 0.
    """
    right = int((similar & predicted).sum())
    positive, called = int(similar.sum()), int(predicted.sum())
    return {
        "precision": right / max(called, 1),
        "recall": right / max(positive, 1),
        "f1": 2 * right / max(called + positive, 1),
        "accuracy": float((similar == predicted).mean()),
    }


def _cosines(
    vectors_of: Vectors, pairs: Sequence[Pair]
) -> tuple[Float[np.ndarray, " e"], Bool[np.ndarray, " e"]]:
    """The cosine of each pair, and whether it is similar. Raises UserError for a vector
    that is not finite."""
    names = [pair.source for pair in pairs] + [pair.target for pair in pairs]
    vectors = vectors_of(names)
    check_part("pair", Embeddings(vectors, names))
    left, right = np.split(normalize(vectors), 2)
    return (left * right).sum(1), np.array([pair.similar for pair in pairs])
