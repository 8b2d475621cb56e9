"""Do documents of one class lie together? k-means against the labels.

The labels are read twice only: to count the classes, and to score the clusters.
"""

import logging
import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.preprocessing import normalize as unit
from threadpoolctl import threadpool_limits

from docjax.errors import UserError
from docjax.tasks.embeddings import check, check_classes
from docjax.types import Embeddings

logger = logging.getLogger(__name__)


def clustering(
    train: Embeddings,
    test: Embeddings,
    *,
    clusters: int | None = None,
    restarts: int = 10,
    seed: int = 0,
    all_documents: bool = False,
    normalize: bool = False,
) -> dict[str, float]:
    """`nmi` and `purity` of the test documents' clusters, both in [0, 1].

    k-means is fitted on the train vectors; a test document joins the nearest centroid.
    With `all_documents` both parts are clustered together, and both are scored (DECA).

    Args:
      clusters: how many; the number of classes it is fitted on when None.
      restarts: initialisations tried; the one with the least inertia is kept.
      normalize: vectors of length 1 first, so that documents are near by their cosine.

    Raises:
      UserError: for a single class, fewer train documents than clusters, or vectors
        that are not finite or differ in width.
    """
    check(train, test)
    labels, fitted, scored = test.labels, train.vectors, test.vectors
    known = train.labels
    if all_documents:
        labels = known = train.labels + test.labels
        fitted = scored = np.concatenate([train.vectors, test.vectors])
    check_classes("train and test" if all_documents else "test", labels)
    if clusters is None:
        check_classes("train", known)
        clusters = len(set(known))
    if normalize:
        fitted, scored = unit(fitted), unit(scored)
    assigned = assign(fitted, scored, clusters, restarts, seed)
    nmi = normalized_mutual_info_score(labels, assigned)  # arithmetic mean
    return {"nmi": float(nmi), "purity": purity(labels, assigned)}


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
        warnings.simplefilter("ignore", ConvergenceWarning)  # told below, with numbers
        found = len(set(kmeans.fit(train).labels_))
        assigned = kmeans.predict(test)
    if found < clusters:
        logger.warning("%d clusters asked, %d found: vectors repeat", clusters, found)
    return assigned


def purity(labels: list[str], assigned: np.ndarray) -> float:
    """The fraction of documents that have their cluster's most frequent label."""
    counts = contingency_matrix(labels, assigned)  # [class, cluster]
    return float(counts.max(axis=0).sum() / counts.sum())
