"""Did training help? A judgement without labels, on documents that training left out.

Excerpts of such documents (`docjax/recipe/judges.py`) compare what was trained with the
start: training must find better confirmed documents, and one excerpt must not find the
other one worse than before.
"""

import dataclasses
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from docjax.recipe.half_scores import is_worse, mean_and_error, reciprocal_ranks
from docjax.recipe.judges import Judges
from docjax.recipe.label_trial import by_labels
from docjax.run.prepared import Prepared
from docjax.storage.processes import of_first
from docjax.types import Kept

DEVIATIONS = 1.96  # of a 95 % interval
WHEN = {
    "start": "at the start",
    "words": "with the words alone",
    "trained": "after training",
    "mean": "without attention",
    "branch": "with attention between sections",
}
LOSS = 0.1  # of what the words gain, which the steps may lose


def judge(
    prepared: Prepared, mesh: jax.sharding.Mesh, start: Any, trained: Any
) -> Kept:
    """Compares the start's parameters with the trained ones.

    Training must find better confirmed documents: the 95 % interval of the mean
    difference over the documents left out must lie above 0. The mean reciprocal rank of
    the other excerpt must not be worse than before training by more than a standard
    error. Labels of the training documents, if there are any, must be readable off the
    vectors (10 nearest neighbours), and not worse than before training by more than a
    standard error. If training fails, or if the steps lose to the words in their share
    (not where words are all of a vector: TF-IDF would confirm), these are judged.

    A branch beside a mean that learns alone (`FromMean.nested`) is judged after that: it
    stays unless it makes the mean worse.
    """
    document = prepared.encoder.document
    if not len(prepared.held_out):
        few = f"{len(prepared.trained_on)} training documents are too few to tell what helps"
        return _of_start(prepared, start, few, {})
    judges = Judges(prepared, mesh, start, prepared.held_out)
    if not prepared.encoder.nested:
        return _judged(judges, trained)
    mean = document.without_branch(trained)
    kept = _judged(judges, mean)
    return _with_branch(judges, kept, trained) if kept.params is mean else kept


def _judged(judges: Judges, trained: Any) -> Kept:
    """What `judge` keeps of the trained parameters, the words and the start."""
    prepared, start = judges.prepared, judges.start
    document = prepared.encoder.document
    alone, has_words = document.words_alone, document.words and document.share
    words = document.begin(start) if has_words else None
    trial = _compare(judges, trained, "trained")
    helped = of_first(trial.helped)  # float sums can differ between machines
    against, more = "" if helped else trial.reason, {}
    if helped and has_words and not alone:
        against, more = _lost(judges, words, trial)
    metrics = trial.metrics | more
    if has_words and of_first(bool(against)):
        trial_of_words = _compare(judges, words, "words")
        metrics = metrics | trial_of_words.metrics
        if of_first(trial_of_words.helped):
            reason = (
                f"the run keeps only the words of the corpus, without the steps: "
                f"{trial_of_words.reason}; with the steps, {against}"
            )
            return Kept("words", words, reason, metrics)
    if helped:
        helps = "the words of the corpus help" if alone else "training helped"
        return Kept("trained", trained, f"{helps}: {trial.reason}", metrics)
    return _of_start(prepared, start, trial.reason, metrics)


def _with_branch(judges: Judges, kept: Kept, trained: Any) -> Kept:
    """The trained parameters, unless their branch makes the mean in `kept` worse.

    Worse beyond a 95 % interval: how well documents that one excerpt finds are confirmed
    by the other, the reciprocal rank of the other excerpt, or how often the nearest
    neighbours of a training document have its label.
    """
    vectors = {"mean": judges.vectors(kept.params), "branch": judges.vectors(trained)}
    scores = {key: judges.confirmed(*each) for key, each in vectors.items()}
    ranks = {key: reciprocal_ranks(both, all_) for key, (all_, both) in vectors.items()}
    labels = judges.prepared.labels[judges.rows]
    known = {key: documents for key, (documents, _) in vectors.items()}
    against, metrics = by_labels(
        labels, known, "branch", WHEN, before="mean", errors=DEVIATIONS
    )
    worse = any(is_worse(x["branch"] - x["mean"], DEVIATIONS) for x in (scores, ranks))
    found = {f"judgement/{key}": float(x.mean()) for key, x in scores.items()}
    found |= {f"judgement/{key}_rank": float(x.mean()) for key, x in ranks.items()}
    metrics = kept.metrics | found | metrics
    text, _, _ = _compared(scores["mean"], scores["branch"], "mean", "branch")
    if of_first(bool(worse or against)):
        reason = f"{kept.reason}; attention is left out: {against or text}"
        return Kept("mean", kept.params, reason, metrics)
    return Kept("trained", trained, f"{kept.reason}; attention stays: {text}", metrics)


def _of_start(
    prepared: Prepared, start: Any, reason: str, metrics: dict[str, float]
) -> Kept:
    document = prepared.encoder.document
    if document.words_alone:  # an untrained encoder would say nothing
        reason = (
            f"the run keeps only the words of the corpus, without the steps: {reason}"
        )
        return Kept("words", document.begin(start), reason, metrics, helps=False)
    reason = f"the run keeps its start: {reason}"
    return Kept("start", document.plain(start), reason, metrics, helps=False)


@dataclasses.dataclass(frozen=True)
class _Trial:
    """Whether parameters are better than the start, why, and the metrics.

    `confirmed` has how well the excerpts of each document confirm what they find.
    """

    helped: bool
    reason: str
    metrics: dict[str, float]
    confirmed: Float[np.ndarray, " b"]


def _compare(judges: Judges, params: Any, name: str) -> _Trial:
    """The trial of `params`, whose metrics are called judgement/NAME."""
    vectors = {"start": judges.at_start, name: judges.vectors(params)}
    scores = {key: judges.confirmed(*each) for key, each in vectors.items()}
    ranks = {
        key: reciprocal_ranks(both, documents)
        for key, (documents, both) in vectors.items()
    }
    text, low, high = _compared(scores["start"], scores[name], "start", name)
    metrics = {f"judgement/{key}": float(x.mean()) for key, x in scores.items()}
    metrics |= {f"judgement/{key}_rank": float(x.mean()) for key, x in ranks.items()}
    gain = f"judgement/{name}_gain"
    metrics |= {f"{gain}_low": low, f"{gain}_high": high}
    if not low > 0:
        return _Trial(False, text, metrics, scores[name])
    if is_worse(ranks[name] - ranks["start"]):
        before, after = ranks["start"].mean(), ranks[name].mean()
        text = (
            f"one half of a document finds the other half worse (mean reciprocal "
            f"rank {before:.3f} at the start, {after:.3f} {WHEN[name]})"
        )
        return _Trial(False, text, metrics, scores[name])
    known = {key: documents for key, (documents, _) in vectors.items()}
    labels = judges.prepared.labels[judges.rows]
    refused, more = by_labels(labels, known, name, WHEN)
    return _Trial(not refused, refused or text, metrics | more, scores[name])


def _lost(judges: Judges, words: Any, trial: _Trial) -> tuple[str, dict[str, float]]:
    """How the steps of `trial` lose to `words`, or "", and the metrics.

    The 95 % interval of the difference in confirmed scores lies below a loss of
    LOSS of what the words gain over the start.
    """
    before, after = judges.confirmed(*judges.vectors(words)), trial.confirmed
    text, low, high = _compared(before, after, "words", "trained")
    gained = before.mean() - judges.confirmed(*judges.at_start).mean()
    name = "judgement/trained_over_words"
    metrics = {f"{name}_low": low, f"{name}_high": high}
    return text if high < -LOSS * max(gained, 0) else "", metrics


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
        f"the neighbours of one half of a document agree with its other half by "
        f"{before.mean():.2f} standard deviations {WHEN[earlier]}, {after.mean():.2f} "
        f"{WHEN[later]} (95 % interval of the gain {low:.3f} to {high:.3f}, "
        f"{len(after)} documents)"
    )
    return text, low, high
