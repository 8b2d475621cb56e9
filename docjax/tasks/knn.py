"""Can the label be read off the nearest training documents?"""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from docjax.errors import UserError
from docjax.retrieval.nearest import Nearest
from docjax.tasks.classification import Classifier
from docjax.tasks.task import option
from docjax.types import Embeddings, TaskData


@dataclasses.dataclass(frozen=True)
class KNearest(Classifier):
    """The most frequent label of the nearest labelled training documents.

    Of equally frequent labels the one of the nearest document is taken. Fewer training
    documents than `neighbours` all vote.
    """

    command = "k_nearest"

    neighbours: int = option(10, "documents that vote (10)", type=int)

    def __post_init__(self) -> None:
        if self.neighbours < 1:
            raise UserError(f"neighbours={self.neighbours}: give at least 1")

    def keywords(self, data: TaskData) -> dict[str, Any]:
        return {"cosine": data.similarity == "cosine"}

    def predict(
        self, train: Embeddings, vectors: Float[np.ndarray, "c d"], cosine: bool = True
    ) -> list[str]:
        """The label of each vector.

        cosine: the nearest have the highest cosine; otherwise the highest product.
        """
        names, labels = np.unique(train.labels, return_inverse=True)
        count = min(self.neighbours, len(labels))
        search = Nearest(vectors[:, None], count, cosine=cosine)
        search.add_all(train.vectors[:, None])
        rows = search.best().rows  # nearest first
        votes = np.zeros((len(rows), len(names)))
        # A share of a vote, halved from one neighbour to the next, breaks ties.
        votes_of = 1 + 0.5 ** np.arange(1, 1 + count)
        np.add.at(votes, (np.arange(len(rows))[:, None], labels[rows]), votes_of)
        return names[votes.argmax(1)].tolist()
