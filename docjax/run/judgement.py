"""Did training help? A judgement without labels, on documents that training left out.

Each of these documents is cut into two halves. From one half a model finds the nearest
documents of the corpus; the other half, which the model has not read, confirms them or
not: by the start's own vectors and by TF-IDF. A model that finds better confirmed
documents has learnt the subjects of the corpus. A model that pulls all documents
together, or pushes all apart, finds worse ones. And from one half a model finds the
other half: it must not become worse at that.

The same halves choose the share of the words before training.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import scipy.sparse
from absl import logging
from jaxtyping import Bool, Float, Int

from docjax.data.splits import evenly
from docjax.encoders.from_mean import FromMean, begun
from docjax.encoders.shapes import segment_is_frozen
from docjax.model.compare import unit
from docjax.run.fields import begun as has_begun
from docjax.run.half_scores import (
    NEAREST,
    by_deviation,
    confirmed,
    halves,
    reciprocal_ranks,
)
from docjax.run.parameters import start_params
from docjax.run.prepare import Prepared
from docjax.run.words import tfidf
from docjax.storage import json_file
from docjax.types import Segments, Units

MOST = 5_000  # documents of the corpus among which a half searches
DEVIATIONS = 1.96  # of a 95 % interval
CERTAIN = 3  # standard errors by which neighbours' labels must be better than chance
SHARES = (0.1, 0.2, 0.3)  # of the words, from which the halves choose


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What a run keeps, and why, in one line.

    Attributes:
      keeps: "trained"; "words", the start with word vectors in their share; "start".
      params: the parameters to keep.
    """

    keeps: str
    params: Any
    reason: str
    metrics: dict[str, float]


def judge_of(
    prepared: Prepared, mesh: jax.sharding.Mesh
) -> Callable[[Any, Any], Judgement] | None:
    """`judge` for a run that has it; None for a run that keeps its last parameters."""
    return functools.partial(judge, prepared, mesh) if prepared.is_judged else None


def with_share(prepared: Prepared, mesh: jax.sharding.Mesh) -> Prepared:
    """The run with the share of the words chosen, if `encoder.document.share` is None.

    Of SHARES that share is taken for which the halves of documents find each other
    best: the lower end of the 95 % interval of the gain in reciprocal rank over no
    words is the highest, and above 0. Otherwise the words get no share. RUN/share.json
    keeps the choice. A run without judges takes `from_mean.SHARE`.
    """
    document, path = prepared.encoder.document, prepared.run / "share.json"
    if not isinstance(document, FromMean) or document.share is not None:
        return prepared
    if not document.words or not len(prepared.judges):
        return prepared
    if has_begun(prepared.run) and path.exists():
        share = json_file.read(path)["share"]
    else:
        gains = _gains_of_shares(prepared, mesh)
        share = max(gains, key=gains.get) if max(gains.values()) > 0 else 0.0
        if jax.process_index() == 0:
            json_file.write(path, {"share": share, "gains": list(gains.items())})
    logging.info("the words of the corpus get a share of %g of a vector", share)
    document = document.clone(share=share)
    return dataclasses.replace(
        prepared, encoder=prepared.encoder.clone(document=document)
    )


def judge(
    prepared: Prepared, mesh: jax.sharding.Mesh, start: Any, trained: Any
) -> Judgement:
    """Compares the start's parameters with the trained ones.

    Training must find better confirmed documents: the 95 % interval of the mean
    difference over the documents left out must lie above 0. The mean reciprocal rank of
    the other half must not be worse than before training by more than a standard error.
    Labels of the training documents, if there are any, must be readable off the vectors
    (10 nearest neighbours), and not worse than before training by more than that.
    If training fails, the start with the words in their share is judged likewise.
    """
    if not len(prepared.judges):
        count = len(prepared.trained_on)
        reason = f"{count} training documents are too few to tell what helps"
        return Judgement("start", start, f"the run keeps its start: {reason}", {})
    judges = _Judges(prepared, mesh, start)
    helped, why, metrics = judges.compare(trained)
    if helped:
        return Judgement("trained", trained, f"training helped: {why}", metrics)
    words = begun(prepared.encoder.document, start)
    if words is not start:
        helped, why_words, metrics_of_words = judges.compare(words)
        if helped:
            reason = f"the run keeps only the words of the corpus: {why_words}"
            reason += f"; after all steps {why}"
            return Judgement("words", words, reason, metrics_of_words)
    return Judgement("start", start, f"the run keeps its start: {why}", metrics)


@dataclasses.dataclass(frozen=True, eq=False)
class _Judges:
    """The halves of the documents left out, and the documents among which they search.

    Both are read once if training never changes the segments' vectors.
    """

    prepared: Prepared
    mesh: jax.sharding.Mesh
    start: Any

    def compare(self, params: Any) -> tuple[bool, str, dict[str, float]]:
        """Whether `params` are better than the start, why in words, and the metrics."""
        known, halves = self.vectors(params)
        start_known, start_halves = self.at_start
        scores = {
            "start": confirmed(start_halves @ start_known.T, self.scores),
            "trained": confirmed(halves @ known.T, self.scores),
        }
        ranks = {
            "start": reciprocal_ranks(start_halves, start_known),
            "trained": reciprocal_ranks(halves, known),
        }
        low, high = interval(scores["trained"] - scores["start"])
        metrics = {f"judgement/{name}": float(x.mean()) for name, x in scores.items()}
        metrics |= {"judgement/gain_low": low, "judgement/gain_high": high}
        metrics |= {f"judgement/rank_{k}": float(x.mean()) for k, x in ranks.items()}
        before, after = ranks["start"].mean(), ranks["trained"].mean()
        text = (
            f"documents found from one half are confirmed by the other half by "
            f"{metrics['judgement/start']:.2f} standard deviations before training, "
            f"{metrics['judgement/trained']:.2f} after it (95 % interval of the "
            f"difference {low:.3f} to {high:.3f}, {len(self.prepared.judges)} "
            f"documents), and the other half is found at a mean reciprocal rank of "
            f"{before:.3f} before, {after:.3f} after"
        )
        if not low > 0 or _is_worse(ranks["trained"] - ranks["start"]):
            return False, text, metrics
        refused, more = _by_labels(self.prepared.labels[self.rows], start_known, known)
        return not refused, refused or text, metrics | more

    def vectors(
        self, params: Any
    ) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, "b2 d"]]:
        """Unit vectors of the documents, and of all first and all second halves."""
        inference = self.prepared.model(params, self.mesh).inference()
        encode = lambda read: unit(np.stack(list(inference.encode(params, read))))
        return encode(self.documents), encode(self.halves)

    @functools.cached_property
    def rows(self) -> Int[np.ndarray, " m"]:
        """The documents among which a half searches."""
        return evenly(self.prepared.learnt_from, MOST)

    @functools.cached_property
    def units(self) -> tuple[list[Units], list[Units]]:
        """The documents and the halves."""
        corpus, limits = self.prepared.corpus, self.prepared.config.limits
        room = self.prepared.tokenizer.frame(limits.segment_tokens).room
        judges = (corpus[row] for row in self.prepared.judges.tolist())
        pairs = [halves(units, room) for units in judges]
        parts = [pair[side] for side in (0, 1) for pair in pairs]
        return [corpus[row] for row in self.rows.tolist()], parts

    @functools.cached_property
    def documents(self) -> list[Segments]:
        return self._read(self.units[0])

    @functools.cached_property
    def halves(self) -> list[Segments]:
        return self._read(self.units[1])

    @functools.cached_property
    def at_start(self) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, "b2 d"]]:
        return self.vectors(self.start)

    @functools.cached_property
    def scores(self) -> Float[np.ndarray, "b2 m"]:
        """How well the other half confirms each document, for each half."""
        known, halves = self.at_start
        scores = by_deviation(halves @ known.T)
        scores += by_deviation(_word_similarities(self.prepared, *self.units))
        return np.roll(scores, len(halves) // 2, axis=0)

    def _read(self, documents: Sequence[Units]) -> list[Segments]:
        """The segments of documents, with vectors if training never changes them."""
        cut = list(map(self.prepared.segments, documents))
        if not segment_is_frozen(self.prepared.encoder):
            return cut
        inference = self.prepared.model(self.start, self.mesh).inference()
        vectors = inference.segments(self.start, cut)
        return [
            dataclasses.replace(segments, vectors=each)
            for segments, each in zip(cut, vectors, strict=True)
        ]


def interval(differences: Float[np.ndarray, " b"]) -> tuple[float, float]:
    """The 95 % interval of the mean."""
    width = DEVIATIONS * differences.std(ddof=1) / len(differences) ** 0.5
    return float(differences.mean() - width), float(differences.mean() + width)


def _is_worse(differences: Float[np.ndarray, " b"]) -> bool:
    """Whether the mean is below 0 by more than a standard error."""
    error = differences.std(ddof=1) / len(differences) ** 0.5
    return bool(differences.mean() < -error)


def _gains_of_shares(prepared: Prepared, mesh: jax.sharding.Mesh) -> dict[float, float]:
    """The lower end of the interval of the gain in reciprocal rank, for each share."""
    start = start_params(prepared.config, prepared.encoder, prepared.run)
    judges = _Judges(prepared, mesh, start)
    known, halves = judges.at_start
    before, gains = reciprocal_ranks(halves, known), {}
    for share in SHARES:
        params = begun(prepared.encoder.document.clone(share=share), start)
        known, halves = judges.vectors(params)
        gains[share], _ = interval(reciprocal_ranks(halves, known) - before)
    return gains


def _by_labels(
    labels: Int[np.ndarray, " m"],
    start: Float[np.ndarray, "m d"],
    trained: Float[np.ndarray, "m d"],
) -> tuple[str, dict[str, float]]:
    """Why the labels of the documents speak against training, or "", and metrics."""
    has_label = labels >= 0
    if len(set(labels[has_label].tolist())) < 2 or has_label.sum() < 5 * NEAREST:
        return "", {}
    right = {
        name: _neighbours_agree(vectors[has_label], labels[has_label])
        for name, vectors in {"start": start, "trained": trained}.items()
    }
    count = len(right["start"])
    accuracy = {name: float(each.mean()) for name, each in right.items()}
    metrics = {f"judgement/knn_{k}": v for k, v in accuracy.items()}
    most = np.bincount(labels[has_label]).max() / count
    error = (most * (1 - most) / count) ** 0.5
    shown = f"{accuracy['start']:.3f} before training, {accuracy['trained']:.3f} after"
    if max(accuracy.values()) < most + CERTAIN * error:
        reason = (
            f"the labels cannot be read off the texts: the nearest neighbours are "
            f"right for {shown}, the most frequent label for {most:.3f}"
        )
        return reason, metrics
    if _is_worse(right["trained"].astype(float) - right["start"]):
        return f"the nearest neighbours' labels are right for {shown}", metrics
    return "", metrics


def _word_similarities(
    prepared: Prepared, whole: Sequence[Units], halves: Sequence[Units]
) -> Float[np.ndarray, "b m"]:
    """The TF-IDF cosines of the halves and of the documents of the corpus."""
    vocabulary = prepared.tokenizer.vocabulary
    documents, idf = tfidf(whole, vocabulary)
    found, _ = tfidf(halves, vocabulary, idf)
    return np.asarray(scipy.sparse.csr_matrix(found @ documents.T).todense())


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
