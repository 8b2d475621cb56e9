"""Texts that say the same in nearly the same words are found."""

import re
import zlib
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

WORD = re.compile(r"[^\W\d_]+")
RUN = 3  # words of one shingle
SKETCH = 8  # smallest hashes by which texts are compared at all


def near_duplicates(texts: Sequence[str], similarity: float = 0.7) -> list[int | None]:
    """For each text the number of an earlier one that it repeats, or None.

    A text repeats another if their sets of three-word runs (letters only, lower case)
    overlap by `similarity` (Jaccard) or more. Candidates are texts that share one of
    the smallest hashes of their runs, so a pair just above may be missed; a pair far
    above is not.
    """
    shingles = [_shingles(text) for text in texts]
    sizes = [len(own) for own in shingles]
    buckets: defaultdict[int, list[int]] = defaultdict(list)
    found: list[int | None] = []
    for number, own in enumerate(shingles):
        sketch = own[:SKETCH].tolist()
        candidates = sorted({i for key in sketch for i in buckets[key]})
        least, most = similarity * len(own), len(own) / similarity
        repeated = (
            i
            for i in candidates
            if least <= sizes[i] <= most and _jaccard(own, shingles[i]) >= similarity
        )
        found.append(next(repeated, None))
        if found[-1] is None:
            for key in sketch:
                buckets[key].append(number)
    return found


def _shingles(text: str) -> np.ndarray:
    """The hashes of the three-word runs of a text, sorted, each once."""
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
