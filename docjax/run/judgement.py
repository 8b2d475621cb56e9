"""Did training help? A judgement without labels, on documents that training left out.

An excerpt is taken from each half of such a document. From one excerpt a model finds
the nearest documents of the corpus; the other excerpt confirms them or not: by the
start's own vectors and by TF-IDF. A model that finds better confirmed documents has
learnt the subjects of the corpus. A model that pulls all documents together, or pushes
all apart, finds worse ones. And from one excerpt a model finds the other excerpt: it
must not become worse at that.

The same excerpts choose the share of the words before training.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import scipy.sparse
from absl import logging
from jaxtyping import Float, Int

from docjax.data.splits import evenly
from docjax.encoders.from_mean import FromMean, plain, with_words
from docjax.encoders.shapes import segment_is_frozen
from docjax.model.compare import unit
from docjax.run.fields import begun
from docjax.run.half_scores import (
    EXCERPT,
    by_deviation,
    confirmed,
    excerpts,
    is_worse,
    mean_and_error,
    reciprocal_ranks,
)
from docjax.run.label_trial import by_labels
from docjax.run.parameters import WORDS, start_params
from docjax.run.prepared import Prepared
from docjax.run.words import tfidf
from docjax.storage import json_file
from docjax.storage.processes import of_first, wait
from docjax.types import DOCUMENT, Segments, Units

MOST = 5_000  # documents of the corpus among which an excerpt searches
DEVIATIONS = 1.96  # of a 95 % interval
WHEN = {
    "start": "at the start",
    "words": "with the words alone",
    "trained": "after training",
}
LOSS = 0.1  # of what the words gain, which the steps may lose
SHARES = (0.1, 0.2, 0.3, 0.5)  # of the words, from which the excerpts choose
SHARE = 0.2  # of the words, with too few documents to choose


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

    Excerpts find each other, and the mean reciprocal ranks choose (`chosen_share`).
    RUN/share.json keeps the choice. With too few documents to judge the words get
    SHARE, or 0 if there are no word vectors.
    """
    document, path = prepared.encoder.document, prepared.run / "share.json"
    if not isinstance(document, FromMean) or not document.chooses_share:
        return prepared
    share = SHARE if _has_words(prepared) else 0.0
    if len(prepared.judges):
        chosen = begun(prepared.run) and path.exists()
        wait("share is asked for")
        if not chosen:
            _choose_share(prepared, mesh)
        wait("share")
        share = json_file.read(path)["share"]
    logging.info("the words of the corpus get a share of %g of a vector", share)
    return with_this_share(prepared, share)


def _has_words(prepared: Prepared) -> bool:
    """Whether the word vectors are not all zero; those of a run `init` are not."""
    path = prepared.run / WORDS
    return not path.exists() or bool(np.load(path, allow_pickle=False).any())


def with_this_share(prepared: Prepared, share: float = SHARE) -> Prepared:
    """The run with this share of the words, if `encoder.document.share` is None."""
    document = prepared.encoder.document
    if not isinstance(document, FromMean) or not document.chooses_share:
        return prepared
    encoder = prepared.encoder.clone(document=document.clone(share=share))
    return prepared.changed(encoder=encoder)


def _choose_share(prepared: Prepared, mesh: jax.sharding.Mesh) -> None:
    """Writes RUN/share.json: the share, and the mean reciprocal rank of each share."""
    ranks = _ranks_of_shares(prepared, mesh)
    if jax.process_index() == 0:
        means = [(share, float(each.mean())) for share, each in ranks.items()]
        found = {"share": chosen_share(ranks), "ranks": means}
        json_file.write(prepared.run / "share.json", found)


def chosen_share(ranks: Mapping[float, Float[np.ndarray, " b"]]) -> float:
    """The smallest share that is not worse than the best one by a standard error.

    The best one has the highest mean gain over the share 0, less its standard error. If
    that is not above 0, the words get no share.

    Args:
      ranks: the reciprocal ranks of the same documents with each share, and with 0.
    """
    gains = {}
    for share, each in ranks.items():
        mean, error = mean_and_error(each - ranks[0.0])
        gains[share] = mean - error
    best = max(gains, key=gains.get)
    return min(x for x in ranks if not is_worse(ranks[x] - ranks[best]))


def judge(
    prepared: Prepared, mesh: jax.sharding.Mesh, start: Any, trained: Any
) -> Judgement:
    """Compares the start's parameters with the trained ones.

    Training must find better confirmed documents: the 95 % interval of the mean
    difference over the documents left out must lie above 0. The mean reciprocal rank of
    the other excerpt must not be worse than before training by more than a standard
    error. Labels of the training documents, if there are any, must be readable off the
    vectors (10 nearest neighbours), and not worse than before training by more than a
    standard error. If training fails, or if the steps lose to the words in their share
    (not where words are all of a vector: TF-IDF would confirm), these are judged.
    """
    document = prepared.encoder.document
    if not len(prepared.judges):
        few = f"{len(prepared.trained_on)} training documents are too few to tell what helps"
        return _of_start(document, start, few, {})
    judges = _Judges(prepared, mesh, start)
    alone = isinstance(document, FromMean) and document.words_alone
    has_words = isinstance(document, FromMean) and document.words and document.share
    words = with_words(document, start) if has_words else None
    trial = judges.compare(trained, "trained")
    helped = of_first(trial.helped)  # float sums can differ between machines
    against, more = "" if helped else trial.reason, {}
    if helped and has_words and not alone:
        against, more = judges.lost(words, trial)
    metrics = trial.metrics | more
    if has_words and of_first(bool(against)):
        trial_of_words = judges.compare(words, "words")
        metrics = metrics | trial_of_words.metrics
        if of_first(trial_of_words.helped):
            reason = (
                f"the run keeps only the words of the corpus, without the steps: "
                f"{trial_of_words.reason}; with the steps, {against}"
            )
            return Judgement("words", words, reason, metrics)
    if helped:
        helps = "the words of the corpus help" if alone else "training helped"
        return Judgement("trained", trained, f"{helps}: {trial.reason}", metrics)
    return _of_start(document, start, trial.reason, metrics)


def _of_start(
    document: Any, start: Any, reason: str, metrics: dict[str, float]
) -> Judgement:
    reason = f"the run keeps its start: {reason}"
    return Judgement("start", plain(document, start), reason, metrics)


@dataclasses.dataclass(frozen=True)
class _Trial:
    """Whether parameters are better than the start, why, and the metrics.

    `confirmed` has how well the excerpts of each document confirm what they find.
    """

    helped: bool
    reason: str
    metrics: dict[str, float]
    confirmed: Float[np.ndarray, " b"]


@dataclasses.dataclass(frozen=True, eq=False)
class _Judges:
    """The excerpts of the documents left out, and the documents that they search."""

    prepared: Prepared
    mesh: jax.sharding.Mesh
    start: Any

    def compare(self, params: Any, name: str) -> _Trial:
        """The trial of `params`, whose metrics are called judgement/NAME."""
        vectors = {"start": self.at_start, name: self.vectors(params)}
        scores = {key: self.confirmed(*each) for key, each in vectors.items()}
        ranks = {
            key: reciprocal_ranks(both, documents)
            for key, (documents, both) in vectors.items()
        }
        text, low, high = _compared(scores["start"], scores[name], "start", name)
        metrics = {f"judgement/{key}": float(x.mean()) for key, x in scores.items()}
        metrics |= {
            f"judgement/{key}_rank": float(x.mean()) for key, x in ranks.items()
        }
        gain = f"judgement/{name}_gain"
        metrics |= {f"{gain}_low": low, f"{gain}_high": high}
        if not low > 0:
            return _Trial(False, text, metrics, scores[name])
        if is_worse(ranks[name] - ranks["start"]):
            before, after = ranks["start"].mean(), ranks[name].mean()
            text = (
                f"one excerpt finds the other worse than at the start (mean reciprocal "
                f"rank {before:.3f} at the start, {after:.3f} {WHEN[name]})"
            )
            return _Trial(False, text, metrics, scores[name])
        known = {key: documents for key, (documents, _) in vectors.items()}
        labels = self.prepared.labels[self.rows]
        refused, more = by_labels(labels, known, name, WHEN[name])
        return _Trial(not refused, refused or text, metrics | more, scores[name])

    def lost(self, words: Any, trial: _Trial) -> tuple[str, dict[str, float]]:
        """How the steps of `trial` lose to `words`, or "", and the metrics.

        The 95 % interval of the difference in confirmed scores lies below a loss of
        LOSS of what the words gain over the start.
        """
        before, after = self.confirmed(*self.vectors(words)), trial.confirmed
        text, low, high = _compared(before, after, "words", "trained")
        gained = before.mean() - self.confirmed(*self.at_start).mean()
        name = "judgement/trained_over_words"
        metrics = {f"{name}_low": low, f"{name}_high": high}
        return text if high < -LOSS * max(gained, 0) else "", metrics

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
        frozen = segment_is_frozen(self.prepared.encoder)
        return frozen or params["segment"] is self.start["segment"]

    @functools.cached_property
    def rows(self) -> Int[np.ndarray, " m"]:
        """The documents that an excerpt searches."""
        return evenly(self.prepared.searched, MOST)

    @functools.cached_property
    def units(self) -> tuple[list[Units], list[Units]]:
        """The documents; all first and then all second excerpts."""
        corpus, room = self.prepared.corpus, self.prepared.frames[DOCUMENT].room
        judges = (corpus[row] for row in self.prepared.judges.tolist())
        pairs = [excerpts(units, min(EXCERPT, room)) for units in judges]
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


def _compared(
    before: Float[np.ndarray, " b"],
    after: Float[np.ndarray, " b"],
    earlier: str,
    later: str,
) -> tuple[str, float, float]:
    """Two models' confirmed scores in words, and the interval of the mean difference."""
    mean, error = mean_and_error(after - before)
    low, high = mean - DEVIATIONS * error, mean + DEVIATIONS * error
    text = (
        f"documents found from one excerpt are confirmed by another excerpt by "
        f"{before.mean():.2f} standard deviations {WHEN[earlier]}, {after.mean():.2f} "
        f"{WHEN[later]} (95 % interval of the difference {low:.3f} to {high:.3f}, "
        f"{len(after)} documents)"
    )
    return text, low, high


def _ranks_of_shares(
    prepared: Prepared, mesh: jax.sharding.Mesh
) -> dict[float, Float[np.ndarray, " b"]]:
    """The reciprocal ranks of the documents left out with no words and each share."""
    params = start_params(prepared.config, prepared.encoder, prepared.run)
    judges = _Judges(prepared, mesh, params)

    def ranks(share: float) -> Float[np.ndarray, " b"]:
        document = prepared.encoder.document.clone(share=share)
        documents, both = judges.vectors(with_words(document, params))
        return reciprocal_ranks(both, documents)

    return {share: ranks(share) for share in (0.0, *SHARES)}


def _word_similarities(
    prepared: Prepared, documents: Sequence[Units], both: Sequence[Units]
) -> Float[np.ndarray, "b m"]:
    """The TF-IDF cosines of the excerpts and of the documents."""
    vocabulary = prepared.tokenizer.vocabulary
    words, idf = tfidf(documents, vocabulary)
    of_excerpts, _ = tfidf(both, vocabulary, idf)
    return np.asarray(scipy.sparse.csr_matrix(of_excerpts @ words.T).todense())
