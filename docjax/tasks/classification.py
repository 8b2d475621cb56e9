"""Can the label be read off the vector? By a linear probe, or by a trained head.

Accuracy and macro-F1 are fractions in [0, 1]. Macro-F1 is the plain mean over the
classes that occur in the test documents, as label or as prediction.
"""

import dataclasses
import hashlib
import logging
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Float
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from docjax.errors import UserError
from docjax.tasks.embeddings import (
    check,
    check_classes,
    check_dense,
    check_labels,
    check_part,
    check_train,
)
from docjax.tasks.task import TaskDefaults
from docjax.types import Embeddings, Outcome, TaskData

MEANING = (
    "the share of test documents whose label a classifier reads right off the vector, "
    "after it has learnt from the labelled training documents"
)

REMEMBERED = 128  # predictions: those of a report, of each system and draw
_PREDICTED: dict[tuple[str, ...], list[str]] = {}

logger = logging.getLogger(__name__)


class Classifier(TaskDefaults):
    """Learns the labels of the labelled training documents.

    A class says with `predict(train, vectors)` which label each vector gets.
    """

    reads = "labels"
    curves = ("accuracy",)
    reads_sparse = False  # a matrix such as that of TF-IDF

    def check(self, data: TaskData, part: str) -> None:
        check_train(data, part)

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        both = data.labelled("train"), data.labelled(part)
        return self.score(*both, **self.keywords(data))

    def keywords(self, data: TaskData) -> dict[str, Any]:
        """Of `predict`, as the data decide."""
        return {}

    def outcomes(self, data: TaskData, part: str) -> dict[str, Outcome]:
        both = data.labelled("train"), data.labelled(part)
        right = self.right(*both, **self.keywords(data)).tolist()
        outcome = Outcome("accuracy", "classification", MEANING, right, True)
        return {"accuracy": outcome}

    def right(
        self, train: Embeddings, test: Embeddings, **keywords: Any
    ) -> Float[np.ndarray, " c"]:
        """1 for each test document whose label is predicted, else 0; as `score`."""
        predicted = self._predicted(train, test, keywords)
        return np.equal(predicted, test.labels).astype(float)

    def score(
        self, train: Embeddings, test: Embeddings, **keywords: Any
    ) -> dict[str, float]:
        """`accuracy` and `macro_f1` of the test documents.

        keywords: of `predict`.

        Raises UserError for a single train class, and vectors that are not finite,
        differ in width, or are sparse where the classifier reads dense ones.
        """
        predicted = self._predicted(train, test, keywords)
        _log_unseen(train.labels, test.labels)
        return score(test.labels, predicted)

    def _predicted(
        self, train: Embeddings, test: Embeddings, keywords: dict[str, Any]
    ) -> list[str]:
        """The predictions, remembered: scores and outcomes are made of the same ones."""
        check(train, test)
        if not self.reads_sparse:
            check_dense(train)
        check_classes("train", train.labels)
        called = repr((type(self), self, sorted(keywords.items())))
        key = called, *map(_digest, (train.vectors, train.labels, test.vectors))
        if key not in _PREDICTED:
            while len(_PREDICTED) >= REMEMBERED:
                del _PREDICTED[next(iter(_PREDICTED))]
            _PREDICTED[key] = self.predict(train, test.vectors, **keywords)
        return _PREDICTED[key]


@dataclasses.dataclass(frozen=True)
class Linear(Classifier):
    """Logistic regression on the frozen vectors of the labelled training documents."""

    command = "classification"
    reads_sparse = True

    iterations: int = 2000  # of L-BFGS at most; the log warns if it has not converged
    standardize: bool = True  # by mean and deviation of the training vectors

    def predict(self, train: Embeddings, vectors: Any) -> list[str]:
        # A sparse matrix would become dense: its weights stay as they are.
        scaled = self.standardize and not scipy.sparse.issparse(train.vectors)
        scaler = StandardScaler() if scaled else FunctionTransformer()
        probe = make_pipeline(scaler, LogisticRegression(max_iter=self.iterations))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            probe.fit(train.vectors.astype("float64"), train.labels)
        for warning in caught:
            logger.warning("linear probe: %s", str(warning.message).splitlines()[0])
        return probe.predict(vectors.astype("float64")).tolist()


LINEAR = Linear()


@dataclasses.dataclass(frozen=True)
class EndToEnd(TaskDefaults):
    """The labels that a trained classification head gives."""

    reads = "labels"
    curves = ("accuracy",)

    def check(self, data: TaskData, part: str) -> None:
        check_labels(data, part)

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        return self.score(data.labelled(part))

    def score(self, test: Embeddings) -> dict[str, float]:
        """`accuracy` and `macro_f1` of `test.predictions`, a trained head's labels.

        Raises:
          UserError: if there are no predictions, or not as many as test documents.
        """
        check_part("test", test)
        if test.predictions is None:
            raise UserError(
                "this model has no classification head, so there are no predictions: "
                "train it with objective docjax.objectives.cross_entropy, or use the "
                "task docjax.tasks.classification.Linear"
            )
        if len(test.predictions) != len(test.labels):
            raise UserError(
                f"{len(test.predictions)} predictions for {len(test.labels)} test "
                "documents: give each document one prediction"
            )
        return score(test.labels, test.predictions)


def score(labels: Sequence[str], predictions: Sequence[str]) -> dict[str, float]:
    """`accuracy` and `macro_f1` of predicted labels.

    A class that is never predicted right has an F1 of 0.
    """
    f1 = f1_score(labels, predictions, average="macro", zero_division=0)
    accuracy = accuracy_score(labels, predictions)
    return {"accuracy": float(accuracy), "macro_f1": float(f1)}


def _digest(values: Any) -> str:
    """A digest of vectors, dense or sparse, or of labels."""
    parts = [values]
    if scipy.sparse.issparse(values):
        parts = [values.data, values.indices, values.indptr, np.array(values.shape)]
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(np.ascontiguousarray(part).tobytes())
        found.update(str(np.shape(part)).encode())
    return found.hexdigest()


def _log_unseen(train: Sequence[str], test: Sequence[str]) -> None:
    """Logs how many test documents have a label that no train document has."""
    unseen = sorted(set(test) - set(train))
    if unseen:
        count = sum(label in unseen for label in test)
        shown = ", ".join(map(repr, unseen[:5])) + (" ..." if len(unseen) > 5 else "")
        text = "%d of %d test documents count as wrong: no train document has label %s"
        logger.warning(text, count, len(test), shown)
