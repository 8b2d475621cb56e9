"""Vectors that are not finite: no search can rank them."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

from docjax.errors import UserError
from docjax.types import Encoded


def check(vectors: Float[np.ndarray, "n ..."], names: Sequence[str], kind: str) -> None:
    """Raises UserError for a vector, or a group of vectors, with NaN or infinity."""
    if np.isfinite(vectors).all():
        return
    good = np.isfinite(vectors).reshape(len(vectors), -1).all(axis=1)
    wrong = np.flatnonzero(~good).tolist()
    raise UserError(
        f"the vector of {kind} {names[wrong[0]]!r} is not finite, the first of "
        f"{len(wrong)}: take a model whose parameters are finite numbers"
    )


def checked(encoded: Iterable[Encoded]) -> Iterator[Encoded]:
    """The documents. Raises UserError for one whose vectors are not finite."""
    for document in encoded:
        check(document.vector[None], [document.id], "document")
        if document.passages is not None:
            check(document.passages[None], [document.id], "document")
        yield document
