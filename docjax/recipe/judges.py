"""Excerpts of documents that the steps do not read, and what a model finds from them.

An excerpt is taken from each half of such a document. From one excerpt a model finds
the nearest documents of the corpus; the other excerpt confirms them or not: by the
start's own vectors and by TF-IDF. A model that finds better confirmed documents has
learnt the subjects of the corpus. A model that pulls all documents together, or pushes
all apart, finds worse ones. And from one excerpt a model finds the other excerpt.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import scipy.sparse
from jaxtyping import Float, Int

from docjax.data.splits import evenly
from docjax.model.compare import unit
from docjax.recipe.half_scores import EXCERPT, by_deviation, confirmed, excerpts
from docjax.recipe.tfidf import tfidf
from docjax.run.prepared import Prepared
from docjax.types import DOCUMENT, Segments, Units

LEAST = 150  # with fewer training documents a quarter of them cannot judge
MOST = 500  # documents that judge
MOST_SEARCHED = 5_000  # documents of the corpus among which an excerpt searches


def judges(
    rows: Int[np.ndarray, " b"], seed: int, least: int = LEAST
) -> Int[np.ndarray, " j"]:
    """A tenth of the training documents, but at least 100 or a quarter, whichever is
    less, and at most MOST; none of fewer than `least`."""
    if len(rows) < least:
        return rows[:0]
    count = min(MOST, max(len(rows) // 10, min(100, len(rows) // 4)))
    generator = np.random.default_rng((seed, 3))
    return np.sort(generator.permutation(rows)[:count])


def of_run(prepared: Prepared) -> Int[np.ndarray, " j"]:
    """The documents that judge a run or choose the share of its words; perhaps none."""
    if prepared.encoder.document.chooses_share:
        return judges(prepared.trained_on, prepared.config.seed)
    return prepared.held_out


@dataclasses.dataclass(frozen=True, eq=False)
class Judges:
    """The excerpts of the documents left out, and the documents that they search."""

    prepared: Prepared
    mesh: jax.sharding.Mesh
    start: Any
    judging: Int[np.ndarray, " j"]

    def confirmed(
        self, documents: Float[np.ndarray, "m d"], both: Float[np.ndarray, "b2 d"]
    ) -> Float[np.ndarray, " b"]:
        """How well the other excerpt confirms what the excerpts of a document find."""
        return confirmed(both @ documents.T, self.scores)

    def vectors(
        self, params: Any
    ) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, "b2 d"]]:
        """Unit vectors of the documents; of all first and then all second excerpts."""
        inference = self.prepared.model(params, self.mesh).inference()
        read = self._read if self._has_start_segments(params) else self._cut
        documents, both = (
            unit(np.stack(list(inference.encode(params, part)))) for part in read
        )
        return documents, both

    def _has_start_segments(self, params: Any) -> bool:
        """Whether `params` give segments the vectors that the start gives them."""
        frozen = self.prepared.encoder.segment_is_frozen
        return frozen or params["segment"] is self.start["segment"]

    @functools.cached_property
    def rows(self) -> Int[np.ndarray, " m"]:
        """The documents that an excerpt searches."""
        others = np.setdiff1d(self.prepared.in_reach, self.judging)
        return evenly(others, MOST_SEARCHED)

    @functools.cached_property
    def units(self) -> tuple[list[Units], list[Units]]:
        """The documents; all first and then all second excerpts."""
        corpus, room = self.prepared.corpus, self.prepared.frames[DOCUMENT].room
        judging = (corpus[row] for row in self.judging.tolist())
        pairs = [excerpts(units, min(EXCERPT, room)) for units in judging]
        both = [pair[side] for side in (0, 1) for pair in pairs]
        return [corpus[row] for row in self.rows.tolist()], both

    @functools.cached_property
    def at_start(self) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, "b2 d"]]:
        return self.vectors(self.start)

    @functools.cached_property
    def scores(self) -> Float[np.ndarray, "b2 m"]:
        """How well the other excerpt confirms each document, for each excerpt."""
        documents, both = self.at_start
        scores = by_deviation(both @ documents.T)
        scores += by_deviation(_word_similarities(self.prepared, *self.units))
        return np.roll(scores, len(both) // 2, axis=0)

    @functools.cached_property
    def _cut(self) -> tuple[list[Segments], list[Segments]]:
        """The segments of the documents and of the excerpts."""
        documents, both = (list(map(self.prepared.segments, x)) for x in self.units)
        return documents, both

    @functools.cached_property
    def _read(self) -> tuple[list[Segments], list[Segments]]:
        """The segments with the vectors that the start gives them."""
        inference = self.prepared.model(self.start, self.mesh).inference()
        documents, both = (
            [
                dataclasses.replace(segments, vectors=vectors)
                for segments, vectors in zip(
                    part, inference.segments(self.start, part), strict=True
                )
            ]
            for part in self._cut
        )
        return documents, both


def _word_similarities(
    prepared: Prepared, documents: Sequence[Units], both: Sequence[Units]
) -> Float[np.ndarray, "b m"]:
    """The TF-IDF cosines of the excerpts and of the documents."""
    vocabulary = prepared.tokenizer.vocabulary
    words, idf = tfidf(documents, vocabulary)
    of_excerpts, _ = tfidf(both, vocabulary, idf)
    return np.asarray(scipy.sparse.csr_matrix(of_excerpts @ words.T).todense())
