"""The teacher of a distillation: the start's document vectors, smoothed by neighbours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from docjax.data.splits import evenly
from docjax.model.compare import unit
from docjax.progress.bars import bar
from docjax.recipe.tfidf import word_vectors
from docjax.run.parameters import start_params
from docjax.run.prepared import Prepared
from docjax.storage import atomic
from docjax.storage.arrays import write_rows
from docjax.storage.processes import wait
from docjax.types import ObjectiveWithTeacher

AT_ONCE = 1024  # documents whose neighbours are searched together
MOST = 20_000  # documents among which neighbours are searched


def teacher_of(
    prepared: Prepared, mesh: jax.sharding.Mesh
) -> Float[np.ndarray, "c d"] | None:
    """The teacher's vectors of the documents of the corpus, in RUN/teacher.npy; None for
    an objective without a teacher."""
    objective = prepared.config.objective.built
    if not isinstance(objective, ObjectiveWithTeacher):
        return None
    rows = prepared.learnt_from
    encode = lambda: _of_start(prepared, mesh, rows)
    path, count = prepared.run / "teacher.npy", len(prepared.corpus)
    made = prepared.begun and path.exists()
    wait("teacher begins")  # every process has looked before one of them writes
    return teacher_vectors(path, objective, rows, count, encode, made)


def _of_start(
    prepared: Prepared, mesh: jax.sharding.Mesh, rows: Int[np.ndarray, " b"]
) -> Float[np.ndarray, "b d"]:
    """The vectors of the start, in which words are counted in whole documents.

    The model counts them in each segment, so that a passage has a vector of its own
    words; a word of many passages is then counted too often in a document.
    """
    document = prepared.encoder.document
    start = start_params(prepared.config, prepared.encoder, prepared.run)

    def encoded(params: Any) -> np.ndarray:
        model = prepared.model(params, mesh)
        documents = (prepared.segments(prepared.corpus[row]) for row in rows.tolist())
        encode = model.inference().encode
        return np.stack(list(encode(model.params, documents, len(rows))))

    if not (document.words and document.share):
        return encoded(document.begin(start))
    table = np.asarray(start["segment"]["words"]["table"])
    words = unit(word_vectors((prepared.corpus[row] for row in rows.tolist()), table))
    if document.words_alone:
        return words
    known = unit(encoded(document.clone(share=0.0).begin(start)))
    share = document.share
    return np.concatenate([(1 - share) ** 0.5 * known, share**0.5 * words], axis=1)


def teacher_vectors(
    path: Path,
    objective: ObjectiveWithTeacher,
    rows: Int[np.ndarray, " b"],
    documents: int,
    encode: Callable[[], Float[np.ndarray, "b d"]],
    made: bool,
) -> Float[np.ndarray, "c d"]:
    """A vector for each of `documents` documents; zero for those not in `rows`.

    The vectors of `encode`, which are those of `rows`, are smoothed. The first process
    writes them to `path`, which is then mapped. `made`: this run made `path` before.
    """
    if not made:
        with bar("teacher"):
            found = smoothed(encode(), objective.neighbours, objective.smoothing)
        if jax.process_index() == 0:
            with atomic.partial(path) as partial:
                write_rows(partial, documents, rows, found)
    wait("teacher")
    return np.load(path, mmap_mode="r", allow_pickle=False)


def smoothed(
    vectors: Float[np.ndarray, "b d"], neighbours: int, smoothing: float
) -> Float[np.ndarray, "b d"]:
    """Each unit vector, moved towards the mean of its nearest documents, length 1.

    A document is one of its own neighbours. Among more than MOST documents the
    neighbours come from an even sample.
    """
    vectors = unit(vectors)
    known = evenly(vectors, MOST)
    count = min(neighbours, len(known))
    found = np.empty_like(vectors)
    for first in range(0, len(vectors), AT_ONCE):
        block = vectors[first : first + AT_ONCE]
        nearest = _nearest(block @ known.T, count)
        mean = unit(known[nearest].mean(1))
        found[first : first + AT_ONCE] = (1 - smoothing) * block + smoothing * mean
    return unit(found)


def _nearest(
    similarities: Float[np.ndarray, "b m"], count: int
) -> Int[np.ndarray, "b n"]:
    """The columns of the `count` greatest similarities of each row, in any order."""
    if count == similarities.shape[1]:
        return np.tile(np.arange(count), (len(similarities), 1))
    return np.argpartition(-similarities, count, axis=1)[:, :count]
