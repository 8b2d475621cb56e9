"""Finds texts that repeat another text in nearly the same words."""

import re
import zlib
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

WORD = re.compile(r"[^\W\d_]+")
RUN = 3  # words of one shingle
SKETCH = 8  # smallest hashes of a text: only texts that share one are compared


def near_duplicates(texts: Sequence[str], similarity: float = 0.7) -> list[int | None]:
    """For each text, the number of an earlier text that it repeats, or None.

    A text repeats another if their sets of three-word runs (letters only, lower case)
    overlap by `similarity` (Jaccard) or more. Only texts that share one of the
    smallest hashes of their runs are compared, so a pair just above `similarity` may be
    missed; a pair far above is not.
    """
    shingles = [_shingles(text) for text in texts]
    sizes = [len(hashes) for hashes in shingles]
    buckets: defaultdict[int, list[int]] = defaultdict(list)
    originals: list[int | None] = []
    for number, hashes in enumerate(shingles):
        sketch = hashes[:SKETCH].tolist()
        candidates = sorted({i for key in sketch for i in buckets[key]})
        least, most = similarity * len(hashes), len(hashes) / similarity
        repeated = (
            i
            for i in candidates
            if least <= sizes[i] <= most and _jaccard(hashes, shingles[i]) >= similarity
        )
        originals.append(next(repeated, None))
        if originals[-1] is None:
            for key in sketch:
                buckets[key].append(number)
    return originals


def _shingles(text: str) -> np.ndarray:
    """The distinct hashes of the three-word runs of a text, sorted."""
    words = WORD.findall(text.lower())
    hashes = np.array([zlib.crc32(word.encode()) for word in words], np.uint64)
    runs = max(len(hashes) - RUN + 1, min(len(hashes), 1))
    mixed = np.zeros(runs, np.uint64)
    for i in range(RUN):
        part = hashes[i : i + runs]
        mixed[: len(part)] = (mixed[: len(part)] + part) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return np.unique(mixed)


def _jaccard(a: np.ndarray, b: np.ndarray) -> float:
    common = len(np.intersect1d(a, b, assume_unique=True))
    return common / (len(a) + len(b) - common)
