"""Can the label be read off the nearest training documents?"""

import dataclasses

import numpy as np
from jaxtyping import Float

from docjax.errors import UserError
from docjax.retrieval.nearest import Nearest
from docjax.tasks import classification
from docjax.tasks.embeddings import (
    check,
    check_classes,
    check_dense,
    check_train,
)
from docjax.tasks.task import TaskDefaults, option
from docjax.types import Embeddings, TaskData


@dataclasses.dataclass(frozen=True)
class KNearest(TaskDefaults):
    """The most frequent label of the nearest labelled training documents.

    Of equally frequent labels the one of the nearest document is taken. Fewer training
    documents than `neighbours` all vote.
    """

    command = "k_nearest"
    reads = "labels"
    curves = ("accuracy",)

    neighbours: int = option(10, "documents that vote (10)", type=int)

    def __post_init__(self) -> None:
        if self.neighbours < 1:
            raise UserError(f"neighbours={self.neighbours}: give at least 1")

    def check(self, data: TaskData, part: str) -> None:
        """Raises UserError for missing labels, and for labels that name no classes."""
        check_train(data, part)

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        cosine = data.similarity == "cosine"
        return self.score(data.labelled("train"), data.labelled(part), cosine)

    def score(
        self, train: Embeddings, test: Embeddings, cosine: bool = True
    ) -> dict[str, float]:
        """`accuracy` and `macro_f1` of the test documents.

        Args:
          cosine: the nearest have the highest cosine; otherwise the highest product.

        Raises:
          UserError: for a single train class, and vectors that are sparse, not finite
            or of different widths.
        """
        check(train, test)
        check_dense(train)
        check_classes("train", train.labels)
        classification.log_unseen(train.labels, test.labels)
        names, labels = np.unique(train.labels, return_inverse=True)
        rows = _nearest(train.vectors, test.vectors, self.neighbours, cosine)
        votes = np.zeros((len(rows), len(names)))
        # A share of a vote, halved from one neighbour to the next, breaks ties.
        votes_of = 1 + 0.5 ** np.arange(1, 1 + rows.shape[1])
        np.add.at(votes, (np.arange(len(rows))[:, None], labels[rows]), votes_of)
        chosen = votes.argmax(1)
        return classification.score(test.labels, names[chosen].tolist())


def _nearest(
    known: Float[np.ndarray, "c d"],
    vectors: Float[np.ndarray, "q d"],
    count: int,
    cosine: bool,
) -> np.ndarray:
    """The rows of the nearest known vectors of each vector, nearest first: [q k]."""
    search = Nearest(vectors[:, None], min(count, len(known)), cosine=cosine)
    for vector in known:
        search.add(vector[None])
    return search.best().rows
