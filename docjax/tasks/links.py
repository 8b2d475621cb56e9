"""Does one document cite the other? A probe on the vectors of both (DocSplit, 4.3)."""

import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from sklearn.metrics import accuracy_score, f1_score

from docjax.data.pairs import Pair, check_kinds, read_pairs, splits_of
from docjax.errors import UserError
from docjax.tasks.embeddings import check, check_dense, check_known
from docjax.tasks.probe import PROBE, Probe
from docjax.tasks.task import TaskDefaults, option, renamed
from docjax.types import Embeddings, Rows, Table, TaskData

FEATURES = ("concat", "concat_prod_diff")

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Links(TaskDefaults):
    """`links` of the pairs in a table.

    Attributes:
      path: a table of `split, source, target, label` (`docjax.data.pairs`) with ids of
        documents. The pairs of the split "train" train the probe. For the part "test"
        the pairs of the split "test" are scored; a table without them is scored on its
        first split of dev, validation, valid and val, as for "validation".
      features: "concat", the vectors of both documents, as in DocSplit; or
        "concat_prod_diff", which adds their product and their difference, as the head
        of Long Range Arena does.
    """

    command = "links"
    reads = "pairs"
    curves = ("accuracy",)

    path: str
    features: str = option("concat", "concat or concat_prod_diff (concat)")
    classifier: Probe = option(
        PROBE,
        "0, 1 or 2 of the probe (1)",
        name="hidden-layers",
        type=int,
        value=lambda layers: Probe(hidden_layers=layers),
    )

    def __post_init__(self) -> None:
        if self.features not in FEATURES:
            raise UserError(
                f"features={self.features!r} is not one of {', '.join(FEATURES)}"
            )

    def check(self, data: TaskData, part: str) -> None:
        pairs = read_pairs(Path(self.path))
        _, scored = splits_of(pairs, part, tuning=("train",))
        if part == "test" and scored != part:
            logger.warning("there are no test pairs: those of %r are scored", scored)
        for name in ("train", scored):
            check_kinds(name, np.array([pair.similar for pair in pairs[name]], bool))
        chosen = pairs["train"] + pairs[scored]
        check_known(data, {name for pair in chosen for name in pair[:2]})

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        pairs = read_pairs(Path(self.path))
        _, scored = splits_of(pairs, part, tuning=("train",))
        train, test = (
            _embeddings(data, pairs[name], self.features) for name in ("train", scored)
        )
        return links(train, test, self.classifier)

    def tables(self, measured: Rows, published: Rows) -> list[Table]:
        names = {"Acc": "accuracy", "F1": "f1"}
        rows = renamed({**measured, **published}, names, times=100)
        note = (
            "Accuracy, and F1 of linked pairs, in percent, of a perceptron on the "
            "vectors of two documents."
        )
        return [Table("Citation links", rows, tuple(names), note, decimals=2)]


def links(train: Embeddings, test: Embeddings, classifier: Probe) -> dict[str, float]:
    """`accuracy` of the test pairs, and the `f1` of linked pairs, in [0, 1].

    train, test: `pair_features` of pairs, and the labels "1" (linked) and "0".

    Raises UserError for vectors that are sparse, not finite or of different widths.
    """
    check(train, test)
    check_dense(train)
    predicted = classifier.predict(train, test.vectors)
    f1 = f1_score(test.labels, predicted, pos_label="1", zero_division=0)
    return {"accuracy": float(accuracy_score(test.labels, predicted)), "f1": float(f1)}


def pair_features(
    sources: Float[np.ndarray, "e d"], targets: Float[np.ndarray, "e d"], features: str
) -> Float[np.ndarray, "e f"]:
    """The vectors of each pair's documents side by side, as `features` says."""
    parts = [sources, targets]
    if features == "concat_prod_diff":
        parts += [sources * targets, sources - targets]
    return np.concatenate(parts, axis=1)


def _embeddings(data: TaskData, pairs: Sequence[Pair], features: str) -> Embeddings:
    sources = data.vectors([pair.source for pair in pairs])
    targets = data.vectors([pair.target for pair in pairs])
    labels = [str(int(pair.similar)) for pair in pairs]
    return Embeddings(pair_features(sources, targets, features), labels)
