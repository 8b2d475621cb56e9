"""Do documents of one class lie together? k-means against the labels.

The labels only count the classes and score the clusters.
"""

import dataclasses
import functools
import logging
import warnings
from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Int
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.preprocessing import normalize as unit
from threadpoolctl import threadpool_limits

from docjax.errors import UserError
from docjax.tasks.embeddings import check, check_classes, check_labels, check_shared
from docjax.tasks.task import TaskDefaults
from docjax.types import Embeddings, Outcome, TaskData

# Metric -> what scikit-learn calls its normalizer.
NORMALIZERS = {"nmi": "arithmetic"} | {
    f"nmi_{name}": name for name in ("geometric", "min", "max")
}

SEEDS = 5  # of k-means, to tell a difference of clusters from chance
MEANING = (
    "how much the clusters of k-means tell of the labels, from 0 (nothing) to 1 (all): "
    f"the normalised mutual information, mean of k-means with {SEEDS} seeds"
)

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Clustering(TaskDefaults):
    """k-means, fitted on the labelled training documents.

    A test document joins the nearest centroid. With `all_documents` both parts are
    clustered together, and both are scored (DECA).
    """

    command = "clustering"
    reads = "labels"
    curves = ("nmi", "purity")

    clusters: int | None = None  # None: as many as the fitted documents have classes
    restarts: int = 10  # initialisations; the result of least inertia is kept
    seed: int = 0
    all_documents: bool = False
    normalize: bool = False  # to length 1, so that k-means compares cosines

    def is_score(self, metric: str) -> bool:
        return metric in ("nmi", "purity")  # of the other forms papers print one

    def check(self, data: TaskData, part: str) -> None:
        check_labels(data, "train", part)
        labels = data.labels(part)
        if self.all_documents:
            labels = data.labels("train") + labels
        check_classes(f"train and {part}" if self.all_documents else part, labels)
        if self.clusters is None and not self.all_documents:
            check_classes("train", data.labels("train"))
        if self.clusters is None:
            check_shared(data, part)

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        return self.score(data.labelled("train"), data.labelled(part))

    def outcomes(self, data: TaskData, part: str) -> dict[str, Outcome]:
        both = data.labelled("train"), data.labelled(part)
        seeds = range(self.seed, self.seed + SEEDS)
        tasks = [dataclasses.replace(self, seed=seed) for seed in seeds]
        values = [task.score(*both)["nmi"] for task in tasks]
        return {
            "nmi": Outcome(
                "cluster match (NMI)", "clusters", MEANING, values, of_documents=False
            )
        }

    def score(self, train: Embeddings, test: Embeddings) -> dict[str, float]:
        """`normalized_information` and `purity` of the test documents, all in [0, 1].

        Raises:
          UserError: for a single class, fewer train documents than clusters, or vectors
            that are not finite or differ in width.
        """
        check(train, test)
        labels, fitted, scored = test.labels, train.vectors, test.vectors
        known = train.labels
        if self.all_documents:
            labels = known = train.labels + test.labels
            fitted = scored = _together(train.vectors, test.vectors)
        check_classes("train and test" if self.all_documents else "test", labels)
        clusters = self.clusters
        if clusters is None:
            check_classes("train", known)
            clusters = len(set(known))
        if self.normalize:
            fitted, scored = unit(fitted), unit(scored)
        assigned = assign(fitted, scored, clusters, self.restarts, self.seed)
        return normalized_information(labels, assigned) | {
            "purity": purity(labels, assigned)
        }


def _together(*parts: Any) -> Any:
    """The rows of all parts, dense or sparse."""
    sparse = scipy.sparse.issparse(parts[0])
    return scipy.sparse.vstack(parts) if sparse else np.concatenate(parts)


def assign(
    train: Any, test: Any, clusters: int, restarts: int, seed: int
) -> np.ndarray:
    """The cluster number of each test vector: int [c]; vectors may be sparse."""
    if clusters < 1 or restarts < 1:
        raise UserError(
            f"clusters={clusters} and restarts={restarts} must be at least 1"
        )
    if train.shape[0] < clusters:
        raise UserError(
            f"{train.shape[0]} train documents cannot make {clusters} clusters: "
            "give more documents or set clusters lower"
        )
    kmeans = KMeans(clusters, n_init=restarts, random_state=seed)
    # With several threads the order of float sums, and so the result, would vary.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # logged below
        distinct = len(set(kmeans.fit(train).labels_))
        assigned = kmeans.predict(test)
    if distinct < clusters:
        text = "%d clusters wanted, %d found: some vectors are equal"
        logger.warning(text, clusters, distinct)
    return assigned


def normalized_information(
    labels: list[str], assigned: Int[np.ndarray, " c"]
) -> dict[str, float]:
    """`nmi`, `nmi_geometric`, `nmi_min` and `nmi_max`; papers rarely say which they print.

    The information that labels and clusters share is divided by the arithmetic mean of
    their entropies, the geometric mean, the smaller and the larger one.
    """
    nmi = functools.partial(normalized_mutual_info_score, labels, assigned)
    return {name: float(nmi(average_method=of)) for name, of in NORMALIZERS.items()}


def purity(labels: list[str], assigned: np.ndarray) -> float:
    """The fraction of documents that have their cluster's most frequent label."""
    counts = contingency_matrix(labels, assigned)  # [class, cluster]
    return float(counts.max(axis=0).sum() / counts.sum())
