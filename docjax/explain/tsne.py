"""t-SNE positions of documents; figures.py draws them."""

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse
from jaxtyping import Float
from sklearn.decomposition import TruncatedSVD
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from docjax.errors import UserError

Vectors = Float[np.ndarray, "c d"] | scipy.sparse.spmatrix | scipy.sparse.sparray


def positions(vectors: Vectors, seed: int = 0) -> Float[np.ndarray, "c 2"]:
    """A t-SNE map of the vectors: perplexity 30, PCA initialisation.

    Sparse vectors are first reduced to 50 dimensions. For n < 91 documents the
    perplexity is (n - 1) / 3. If all vectors are equal, all positions are 0.
    """
    if scipy.sparse.issparse(vectors):
        if vectors.shape[1] == 1:  # TruncatedSVD needs two columns
            vectors = vectors.toarray()
        else:
            width = min(50, vectors.shape[1] - 1)
            vectors = TruncatedSVD(width, random_state=seed).fit_transform(vectors)
    if np.ptp(vectors, axis=0).max() == 0:  # PCA would divide by zero
        return np.zeros((len(vectors), 2), np.float32)
    if vectors.shape[1] == 1:  # PCA needs two columns
        vectors = np.pad(vectors, ((0, 0), (0, 1)))
    perplexity = min(30.0, (len(vectors) - 1) / 3)
    with threadpool_limits(1):  # threads would change the order of sums, and the map
        return TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(
            vectors
        )


def sample(count: int, most: int, seed: int = 0) -> np.ndarray:
    """A random sample of at most `most` of the rows 0 to count-1, sorted: int [c]."""
    if count <= most:
        return np.arange(count)
    generator = np.random.default_rng(seed)
    return np.sort(generator.choice(count, most, replace=False))


def check(
    panels: Mapping[str, Vectors], labels: Sequence[str], ids: Sequence[str] | None
) -> None:
    """Raises UserError unless all panels show the same 5 or more documents."""
    counts = {"labels": len(labels)} | {n: x.shape[0] for n, x in panels.items()}
    if ids is not None:
        counts["ids"] = len(ids)
    if len(set(counts.values())) > 1:
        sizes = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise UserError(
            f"t-SNE panels show different numbers of documents, got {sizes}: give the "
            "same documents to all panels"
        )
    if not panels:
        raise UserError("t-SNE got no panels: give at least one panel of vectors")
    if len(labels) < 5:
        raise UserError(
            f"t-SNE got {len(labels)} documents, it needs at least 5: label more "
            "documents"
        )
    for name, vectors in panels.items():
        values = vectors.data if scipy.sparse.issparse(vectors) else vectors
        if not np.isfinite(values).all():
            raise UserError(
                f"t-SNE panel {name!r} has vectors that are not finite: the model has "
                "diverged; lower optimizer.learning_rate"
            )
