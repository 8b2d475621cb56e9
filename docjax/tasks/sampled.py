"""A sample of the documents of a part, for analyses of texts."""

from collections.abc import Callable, Iterator

import numpy as np

from docjax.errors import UserError
from docjax.types import Document


def sampled(
    read: Callable[[], Iterator[Document]], part: str, most: int | None, seed: int
) -> list[Document]:
    """At most `most` documents of a part, in their order; None: all.

    Args:
      read: begins again with the part's first document.

    Raises:
      UserError: if there is none, and for `most` below 1.
    """
    if most is not None and most < 1:
        raise UserError(f"most={most} documents: give 1 or more, or None for all")
    count = sum(1 for _ in read())
    if not count:
        raise UserError(f"there is no {part} document to analyse: check the splits")
    if most is None or most >= count:
        return list(read())
    chosen = np.random.default_rng(seed).choice(count, most, replace=False)
    rows = set(chosen.tolist())
    return [each for row, each in enumerate(read()) if row in rows]
