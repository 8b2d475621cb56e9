"""Can the label be read off the vector? By a linear probe, or by a trained head.

Accuracy and macro-F1 are fractions in [0, 1]. Macro-F1 is the plain mean over the
classes that occur in the test documents, as label or as prediction.
"""

import dataclasses
import logging
import warnings
from collections.abc import Sequence

import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from docjax.errors import UserError
from docjax.tasks.embeddings import (
    check,
    check_classes,
    check_labels,
    check_part,
    check_train,
)
from docjax.tasks.task import TaskDefaults
from docjax.types import Embeddings, TaskData

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Linear(TaskDefaults):
    """Logistic regression on the frozen vectors of the labelled training documents.

    Attributes:
      iterations: the most steps of L-BFGS. The log warns if it has not converged.
      standardize: scales features by the mean and deviation of the training vectors.
    """

    command = "classification"
    reads = "labels"
    curves = ("accuracy",)

    iterations: int = 2000
    standardize: bool = True

    def check(self, data: TaskData, part: str) -> None:
        """Raises UserError for missing labels, and for labels that name no classes."""
        check_train(data, part)

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        return self.score(data.labelled("train"), data.labelled(part))

    def score(self, train: Embeddings, test: Embeddings) -> dict[str, float]:
        """`accuracy` and `macro_f1` of the test documents.

        Raises:
          UserError: for a single train class, or vectors that are not finite or differ
            in width.
        """
        check(train, test)
        check_classes("train", train.labels)
        # A sparse matrix would become dense: its weights stay as they are.
        scaled = self.standardize and not scipy.sparse.issparse(train.vectors)
        scaler = StandardScaler() if scaled else FunctionTransformer()
        regression = LogisticRegression(C=1.0, max_iter=self.iterations)
        probe = make_pipeline(scaler, regression)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            probe.fit(train.vectors.astype("float64"), train.labels)
        for warning in caught:
            logger.warning("linear probe: %s", str(warning.message).splitlines()[0])
        log_unseen(train.labels, test.labels)
        predictions = probe.predict(test.vectors.astype("float64")).tolist()
        return score(test.labels, predictions)


LINEAR = Linear()


@dataclasses.dataclass(frozen=True)
class EndToEnd(TaskDefaults):
    """The labels that a trained classification head gives."""

    reads = "labels"
    curves = ("accuracy",)

    def check(self, data: TaskData, part: str) -> None:
        """Raises UserError for missing labels."""
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


def log_unseen(train: Sequence[str], test: Sequence[str]) -> None:
    """Logs how many test documents have a label that no train document has."""
    unseen = sorted(set(test) - set(train))
    if unseen:
        count = sum(label in unseen for label in test)
        logger.warning(
            "%d of %d test documents count as wrong: no train document has label %s",
            count,
            len(test),
            ", ".join(map(repr, unseen[:5])) + (" ..." if len(unseen) > 5 else ""),
        )
