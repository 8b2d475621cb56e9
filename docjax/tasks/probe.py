"""Can the label be read off the vector by a small trained network? The papers' probe.

SimLTE and DocSplit, section 4: the encoder is frozen, and only a perceptron on the
documents' vectors is trained, with a learning rate of 3e-4 and batches of 8 documents.
"""

import dataclasses
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from docjax.encoders import perceptron
from docjax.encoders.perceptron import Perceptron
from docjax.errors import UserError
from docjax.tasks.classification import Classifier
from docjax.tasks.task import option, renamed
from docjax.types import AFTER, BEFORE, Embeddings, Rows, Table

PERCENT = {"Acc": "accuracy", "F1": "macro_f1"}  # column -> metric
GAIN = "gain in F1"


@dataclasses.dataclass(frozen=True)
class Probe(Classifier):
    """A perceptron, trained on the labelled training documents.

    The epoch with the most right predictions of held-out training documents is kept,
    the later of equal ones; the last epoch if nothing is held out.
    """

    command = "probe"

    hidden_layers: int = option(1, "0, 1 or 2 (1)", type=int)
    width: int = 768
    dropout: float = 0.1
    learning_rate: float = 3e-4
    weight_decay: float = 0.01  # of AdamW (the papers do not name it)
    batch: int = 8
    epochs: int = 10
    held_out: float = 0.1  # the share of the training documents that choose the epoch
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("width", "batch", "epochs"):
            if getattr(self, name) < 1:
                raise UserError(f"{name}={getattr(self, name)}: give at least 1")
        if self.hidden_layers not in (0, 1, 2):
            raise UserError(f"hidden_layers={self.hidden_layers}: give 0, 1 or 2")
        for name in ("dropout", "held_out"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name}={getattr(self, name)} is not in [0, 1)")
        if not self.learning_rate > 0:
            raise UserError(f"learning_rate={self.learning_rate}: give more than 0")
        if not self.weight_decay >= 0:
            raise UserError(f"weight_decay={self.weight_decay}: give 0 or more")

    def predict(
        self, train: Embeddings, vectors: Float[np.ndarray, "c d"]
    ) -> list[str]:
        """The label of each vector, after training on `train`."""
        names, labels = np.unique(train.labels, return_inverse=True)
        model = Perceptron(len(names), self.hidden_layers, self.width, self.dropout)
        params = self._fit(model, train.vectors, labels.astype(np.int32))
        numbers = perceptron.predicted(model, params, vectors)
        return names[np.asarray(numbers)].tolist()

    def tables(self, measured: Rows, published: Rows) -> list[Table]:
        rows = renamed({**measured, **published}, PERCENT, times=100)
        before, after = (
            measured.get(row, {}).get("macro_f1") for row in (BEFORE, AFTER)
        )
        if before and after is not None:
            rows[AFTER][GAIN] = 100 * (after / before - 1)
        note = (
            "Accuracy and macro-F1 in percent of a perceptron on the frozen vectors, "
            "trained with all training documents. The gain is in percent of the "
            "macro-F1 before training."
        )
        title = "A probe of the vectors"
        return [Table(title, rows, (*PERCENT, GAIN), note, decimals=2)]

    def _fit(
        self,
        model: Perceptron,
        vectors: Float[np.ndarray, "c d"],
        labels: Int[np.ndarray, " c"],
    ) -> Any:
        """The parameters after the best epoch."""
        generator = np.random.default_rng(self.seed)
        shuffled = generator.permutation(len(labels))
        count = min(round(self.held_out * len(labels)), len(labels) - 1)
        held, rows = shuffled[:count], shuffled[count:]
        order = np.full((self.epochs, -(-len(rows) // self.batch) * self.batch), -1)
        for epoch in order:
            epoch[: len(rows)] = generator.permutation(rows)
        order = order.reshape(self.epochs, -1, self.batch)
        rates, key = (self.learning_rate, self.weight_decay), jax.random.key(self.seed)
        return perceptron.trained(model, *rates, vectors, labels, held, order, key)


PROBE = Probe()
# Few documents: a hundred epochs, and none of them can be left out (the papers do not
# say; their tables are the mean over ten draws).
FEW = Probe(epochs=100, held_out=0.0)
