"""Did training help? A judgement without labels, on documents that training left out.

Each of these documents is cut into two halves. From one half a model finds the nearest
documents of the corpus; the other half, which the model has not read, confirms them or
not: by the start's own vectors and by TF-IDF. A model that finds better confirmed
documents has learnt the subjects of the corpus. A model that pulls all documents
together, or pushes all apart, finds worse ones.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int

from docjax.data.splits import evenly
from docjax.encoders.shapes import segment_is_frozen
from docjax.model.compare import unit
from docjax.model.inference import windows
from docjax.run.prepare import Prepared
from docjax.run.words import tfidf
from docjax.types import Segments, Units

NEAREST = 10  # documents that a half finds
MANY = 4  # units of a document whose halves are every other unit
MOST = 5_000  # documents of the corpus among which it searches
DEVIATIONS = 1.96  # of a 95 % interval
CERTAIN = 3  # standard errors by which neighbours' labels must be better than chance


@dataclasses.dataclass(frozen=True)
class Judgement:
    """Whether a run keeps what it trained, and why, in one line."""

    trained: bool
    reason: str
    metrics: dict[str, float]


def judge_of(
    prepared: Prepared, mesh: jax.sharding.Mesh
) -> Callable[[Any, Any], Judgement] | None:
    """`judge` for a run that has it; None for a run that keeps its last parameters."""
    return functools.partial(judge, prepared, mesh) if prepared.is_judged else None


def judge(
    prepared: Prepared, mesh: jax.sharding.Mesh, start: Any, trained: Any
) -> Judgement:
    """Compares the start's parameters with the trained ones.

    Training must find better confirmed documents: the 95 % interval of the mean
    difference over the documents left out must lie above 0. Labels of the training
    documents, if there are any, must be readable off the vectors (10 nearest
    neighbours), and not worse than before training by more than a standard error.
    """
    rows = evenly(prepared.learnt_from, MOST)
    if not len(prepared.judges):
        count = len(prepared.trained_on)
        return _kept(f"{count} training documents are too few to tell what helps", {})
    scores, known = _confirmed(
        prepared, mesh, rows, {"start": start, "trained": trained}
    )
    gain = scores["trained"] - scores["start"]
    width = DEVIATIONS * gain.std(ddof=1) / len(gain) ** 0.5
    low, high = float(gain.mean() - width), float(gain.mean() + width)
    metrics = {f"judgement/{name}": float(scores[name].mean()) for name in scores}
    metrics |= {"judgement/gain_low": low, "judgement/gain_high": high}
    text = (
        f"documents found from one half are confirmed by the other half by "
        f"{metrics['judgement/start']:.2f} standard deviations before training, "
        f"{metrics['judgement/trained']:.2f} after it (95 % interval of the "
        f"difference {low:.3f} to {high:.3f}, {len(gain)} documents)"
    )
    if not low > 0:
        return _kept(text, metrics)
    return _with_labels(prepared, rows, known, text, metrics)


def _confirmed(
    prepared: Prepared,
    mesh: jax.sharding.Mesh,
    rows: Int[np.ndarray, " m"],
    models: Mapping[str, Any],
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """For each model how well the other halves confirm what it finds, a number for each
    document left out; and its unit vectors of the documents `rows`."""
    room = prepared.tokenizer.frame(prepared.config.limits.segment_tokens).room
    judges = [prepared.corpus[row] for row in prepared.judges.tolist()]
    pairs = [_halves(units, room) for units in judges]
    halves = [pair[side] for side in (0, 1) for pair in pairs]
    whole = [prepared.corpus[row] for row in rows.tolist()]
    read = functools.partial(_read, prepared, mesh, models["start"])
    vectors = functools.partial(_unit_vectors, prepared, mesh)
    read_whole, read_halves = read(whole), read(halves)
    known = {name: vectors(params, read_whole) for name, params in models.items()}
    found = {
        name: vectors(models[name], read_halves) @ known[name].T for name in models
    }
    confirmed = _by_deviation(found["start"])
    confirmed += _by_deviation(_word_similarities(prepared, halves, whole))
    confirmed = np.roll(confirmed, len(pairs), axis=0)  # by the other half
    nearest = {name: _mean_of_nearest(found[name], confirmed) for name in models}
    return {name: each.reshape(2, -1).mean(0) for name, each in nearest.items()}, known


def _with_labels(
    prepared: Prepared,
    rows: Int[np.ndarray, " m"],
    known: dict[str, Float[np.ndarray, "m d"]],
    text: str,
    metrics: dict[str, float],
) -> Judgement:
    """The judgement after a look at the labels of the training documents."""
    labels = prepared.labels[rows]
    has_label = labels >= 0
    if len(set(labels[has_label].tolist())) < 2 or has_label.sum() < 5 * NEAREST:
        return Judgement(True, f"training helped: {text}", metrics)
    right = {
        name: _neighbours_agree(vectors[has_label], labels[has_label])
        for name, vectors in known.items()
    }
    count = len(right["start"])
    accuracy = {name: float(each.mean()) for name, each in right.items()}
    metrics = metrics | {f"judgement/knn_{k}": v for k, v in accuracy.items()}
    most = np.bincount(labels[has_label]).max() / count
    error = (most * (1 - most) / count) ** 0.5
    shown = f"{accuracy['start']:.3f} before training, {accuracy['trained']:.3f} after"
    if max(accuracy.values()) < most + CERTAIN * error:
        reason = (
            f"the labels cannot be read off the texts: the nearest neighbours are "
            f"right for {shown}, the most frequent label for {most:.3f}"
        )
        return _kept(reason, metrics)
    change = right["trained"].astype(float) - right["start"]
    if change.mean() < -change.std(ddof=1) / count**0.5:
        return _kept(f"the nearest neighbours' labels are right for {shown}", metrics)
    return Judgement(True, f"training helped: {text}", metrics)


def _kept(reason: str, metrics: dict[str, float]) -> Judgement:
    return Judgement(False, f"the run keeps its start: {reason}", metrics)


def _read(
    prepared: Prepared, mesh: jax.sharding.Mesh, start: Any, documents: Sequence[Units]
) -> list[Segments]:
    """The segments of documents, with their vectors if training never changes them."""
    cut = list(map(prepared.segments, documents))
    if not segment_is_frozen(prepared.encoder):
        return cut
    inference = prepared.model(start, mesh).inference()
    new = [segments for segments in cut if segments.vectors is None]
    vectors = iter(
        vector
        for window in windows(new)
        for vector in inference.segments(start, window)
    )
    return [
        dataclasses.replace(segments, vectors=next(vectors))
        if segments.vectors is None
        else segments
        for segments in cut
    ]


def _unit_vectors(
    prepared: Prepared,
    mesh: jax.sharding.Mesh,
    params: Any,
    documents: Sequence[Segments],
) -> Float[np.ndarray, "b d"]:
    inference = prepared.model(params, mesh).inference()
    return unit(np.stack(list(inference.encode(params, documents))))


def _halves(units: Units, room: int) -> tuple[Units, Units]:
    """Every other unit, and the rest; fewer than MANY units are cut in the middle.

    room: tokens of a segment, so that no half has a unit that does not fit.
    """
    numbers = np.arange(len(units))
    if len(units) >= MANY:
        return units.take(numbers[::2]), units.take(numbers[1::2])
    middle = len(units.tokens) // 2
    halves = units.tokens[:middle], units.tokens[middle:]
    first, second = (Units(part, *_pieces(len(part), room)) for part in halves)
    return first, second


def _pieces(
    tokens: int, room: int
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " u"], Int[np.ndarray, "e 2"]]:
    """Offsets, sections and edges of consecutive units of at most `room` tokens."""
    starts = np.arange(0, max(tokens, 1), room)
    sections = np.zeros(len(starts), np.int32)
    return np.append(starts, tokens), sections, np.zeros((0, 2), np.int32)


def _word_similarities(
    prepared: Prepared, halves: Sequence[Units], whole: Sequence[Units]
) -> Float[np.ndarray, "b m"]:
    """The TF-IDF cosines of the halves and of the documents of the corpus."""
    vocabulary = prepared.tokenizer.vocabulary
    documents, idf = tfidf(whole, vocabulary)
    found, _ = tfidf(halves, vocabulary, idf)
    return np.asarray(scipy.sparse.csr_matrix(found @ documents.T).todense())


def _by_deviation(similarities: Float[np.ndarray, "b m"]) -> Float[np.ndarray, "b m"]:
    """Similarities of each row in standard deviations from the row's mean."""
    centred = similarities - similarities.mean(1, keepdims=True)
    return centred / np.maximum(centred.std(1, keepdims=True), 1e-6)


def _mean_of_nearest(
    found: Float[np.ndarray, "b m"], confirmed: Float[np.ndarray, "b m"]
) -> Float[np.ndarray, " b"]:
    """For each row, the mean of `confirmed` over the NEAREST columns by `found`."""
    count = min(NEAREST, found.shape[1])
    nearest = np.argsort(-found, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(confirmed, nearest, axis=1).mean(1)


def _neighbours_agree(
    vectors: Float[np.ndarray, "b d"], labels: Int[np.ndarray, " b"]
) -> Bool[np.ndarray, " b"]:
    """Whether the most frequent label of the NEAREST other documents is right."""
    right = np.empty(len(labels), bool)
    classes = int(labels.max()) + 1
    for first in range(0, len(vectors), 1024):
        similarities = vectors[first : first + 1024] @ vectors.T
        own = np.arange(first, first + len(similarities))
        similarities[np.arange(len(own)), own] = -np.inf
        nearest = np.argpartition(-similarities, NEAREST, axis=1)[:, :NEAREST]
        for row, columns in zip(own.tolist(), nearest, strict=True):
            votes = np.bincount(labels[columns], minlength=classes)
            right[row] = votes.argmax() == labels[row]
    return right
