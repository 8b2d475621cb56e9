"""What the report says first: which system wins on the test documents, by how much,
whether that is more than noise, and what to do.

A difference is noise if 0 lies in its 95 % interval: over bootstrap samples of the test
documents, or of k-means, which has a score a seed, by Welch's t-test.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t

from docjax.types import Outcome

TRAINED, START, ENCODER, BESIDE, WORDS = "trained start encoder beside words".split()
RESAMPLES = 1000  # of the test documents
INTERVAL = (2.5, 97.5)  # percentiles
LEAST = 0.005  # a smaller difference of clusters is called none
TELLS = 0.02  # test documents that leave more than this open are too few
SIMPLEST = (WORDS, ENCODER, START, BESIDE)


class System(NamedTuple):
    """What the report compares: a row of its first table."""

    kind: str  # TRAINED, START, ENCODER, BESIDE or WORDS
    name: str
    outcomes: Mapping[str, Outcome]  # by the metric in metrics.jsonl
    note: str = ""


class Difference(NamedTuple):
    """How far a score is above another one, and the 95 % interval of that."""

    mean: float
    low: float
    high: float


class Verdict(NamedTuple):
    """The first sentences of the report."""

    finding: str
    advice: str


def number(value: float) -> str:
    """A score with three digits, without a zero before the point: .658"""
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def interval(outcome: Outcome) -> tuple[float, float]:
    """The 95 % interval of a score over test documents; of seeds lowest and highest."""
    if not outcome.of_documents:
        return min(outcome.values), max(outcome.values)
    return _of_means(np.array(outcome.values))


def difference(a: Outcome, b: Outcome) -> Difference:
    """How far `a` is above `b`, over the same test documents."""
    mean = float(np.mean(a.values) - np.mean(b.values))
    if a.of_documents:
        return Difference(mean, *_of_means(np.subtract(a.values, b.values)))
    half = _welch(a.values, b.values)
    low, high = mean - half, mean + half
    if abs(mean) < LEAST:
        low, high = min(low, 0.0), max(high, 0.0)
    return Difference(mean, low, high)


def clear_best(systems: Sequence[System]) -> dict[str, str]:
    """The name of the system that is beyond noise above all others, by metric."""
    best = {}
    for metric in dict.fromkeys(m for each in systems for m in each.outcomes):
        ranked = sorted(
            (each for each in systems if metric in each.outcomes),
            key=lambda each: -np.mean(each.outcomes[metric].values),
        )
        first = ranked[0].outcomes[metric]
        rest = [difference(first, each.outcomes[metric]) for each in ranked[1:]]
        if rest and all(each.low > 0 for each in rest):
            best[metric] = ranked[0].name
    return best


def verdict(tried: str, systems: Sequence[System], keeps: str) -> Verdict:
    """The verdict on the first of `systems`, which is the run's own.

    Args:
      tried: "On 1,234 test documents with 20 labels".
      keeps: the name in RUN/judgement.json of what the run keeps; "start": training was
        not shown to help.
    """
    own, *others = systems
    if keeps == "start":  # the encoder is this start
        others = [each for each in others if each.kind not in (ENCODER, START)]
    if not others:
        scores = ", ".join(_score(own, metric) for metric in own.outcomes)
        finding = f"{tried}, {own.name} has {scores}; nothing else was scored."
        return Verdict(finding, _of_start(systems) if keeps == "start" else "")
    against = {each.name: _against(own, each) for each in others}
    better = [each for each in others if _is_worse(against[each.name])]
    level = [each for each in others if _is_level(against[each.name])]
    mixed = [each for each in others if _is_mixed(against[each.name])]
    if better:
        best = max(better, key=lambda each: sum(_means(each).values()))
        told = _told(best, own, _against(best, own))
        finding = f"{tried}, {best.name} is better than {own.name}. {told}"
        return Verdict(finding, _instead(best, keeps, systems))
    if mixed:
        other = max(mixed, key=lambda each: sum(_means(each).values()))
        return _mixed(tried, own, other, against[other.name])
    if level:
        simplest = min(level, key=lambda each: SIMPLEST.index(each.kind))
        found = _level(tried, own, simplest, against[simplest.name], keeps, systems)
        beaten = [each.name for each in others if each not in level]
        if beaten:
            above = f" {_list(beaten)}: worse than {own.name} by more than noise."
            return found._replace(finding=found.finding + above)
        return found
    rival = max(others, key=lambda each: sum(_means(each).values()))
    finding = f"{tried}, {own.name} wins. {_told(own, rival, against[rival.name])}"
    advice = _of_start(systems) if keeps == "start" else "Take this model."
    return Verdict(finding, advice)


def of_search(tried: str, systems: Sequence[System]) -> Verdict:
    """The verdict on ways to search, which were scored on the same queries.

    Args:
      tried: "On 50 test queries".
      systems: the simplest first.
    """
    ranked = sorted(systems, key=lambda each: -sum(_means(each).values()))
    best, others = ranked[0], ranked[1:]
    level = [each for each in others if _is_level(_against(best, each))]
    simplest = min([best, *level], key=list(systems).index)
    told = " ".join(_told(best, each, _against(best, each)) for each in others)
    finding = f"{tried}, {best.name} finds the answers best. {told}"
    if simplest is best:
        return Verdict(finding, f"Search by {best.name}.")
    return Verdict(finding, f"Search by {simplest.name}: as good, and simpler.")


def _against(a: System, b: System) -> dict[str, Difference]:
    """How far `a` is above `b`, by metric."""
    return {
        metric: difference(outcome, b.outcomes[metric])
        for metric, outcome in a.outcomes.items()
        if metric in b.outcomes
    }


def _gains(found: Mapping[str, Difference]) -> list[str]:
    return [metric for metric, each in found.items() if each.low > 0]


def _losses(found: Mapping[str, Difference]) -> list[str]:
    return [metric for metric, each in found.items() if each.high < 0]


def _is_worse(found: Mapping[str, Difference]) -> bool:
    return bool(_losses(found)) and not _gains(found)


def _is_mixed(found: Mapping[str, Difference]) -> bool:
    return bool(_losses(found)) and bool(_gains(found))


def _is_level(found: Mapping[str, Difference]) -> bool:
    return not _losses(found) and not _gains(found)


def _told(a: System, b: System, found: Mapping[str, Difference]) -> str:
    """The scores of `a`, each with that of `b`; apart what is noise."""
    noise = {metric: each.low <= 0 <= each.high for metric, each in found.items()}
    told = []
    for is_noise, words in ((False, "By more than noise"), (True, "Within noise")):
        names = [metric for metric in found if noise[metric] == is_noise]
        if names:
            told.append(f"{words}: {_list(_both(a, b, name) for name in names)}.")
    return " ".join(told)


def _both(a: System, b: System, metric: str) -> str:
    return f"{_score(a, metric)} ({b.name} {number(_means(b)[metric])})"


def _list(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _instead(best: System, keeps: str, systems: Sequence[System]) -> str:
    """What to take in place of the run's own model."""
    failed = "Training did not help. " if keeps == "start" else ""
    if best.kind == WORDS:
        return f"{failed}Take {best.name}: it is better here, and simpler."
    if best.kind == ENCODER:
        return f"Training did not help: use {best.name} as it is."
    if best.kind == START:
        return "Training did not help: use the model that training began with."
    return f"{failed}Take {best.name}, which needs no training."


def _of_start(systems: Sequence[System]) -> str:
    """The advice of a run that keeps its start."""
    encoder = next((each.name for each in systems if each.kind == ENCODER), "")
    if encoder:
        return f"Training did not help: use {encoder} as it is."
    return "Training did not help: this model is what training began with."


def _mixed(
    tried: str, own: System, other: System, found: Mapping[str, Difference]
) -> Verdict:
    """Each of the two is better at something, by more than noise."""
    gains, losses = _gains(found), _losses(found)
    uses = lambda metrics: _list(own.outcomes[metric].use for metric in metrics)
    finding = (
        f"{tried}, {own.name} is better in {_list(_both(own, other, m) for m in gains)}, "
        f"but {other.name} in {_list(_both(other, own, m) for m in losses)}. That is "
        "more than noise."
    )
    advice = f"Take this model for {uses(gains)}, {other.name} for {uses(losses)}."
    return Verdict(finding, advice)


def _level(
    tried: str,
    own: System,
    other: System,
    found: Mapping[str, Difference],
    keeps: str,
    systems: Sequence[System],
) -> Verdict:
    """No difference is more than noise."""
    told = _told(own, other, found)
    finding = f"{tried}, {own.name} and {other.name} are level. {told}"
    more = _documents_to_tell(own, found)
    if more:
        names = f"{own.name} and {other.name}"
        finding = f"{tried}, {names} cannot be told apart. {told}"
        advice = f"Too few test documents to tell: label about {more:,} more."
    elif keeps == "start":
        advice = _of_start(systems)
    elif other.kind == WORDS:
        advice = f"{other.name} is as good: take it, it is simpler."
    else:
        advice = f"{other.name} is as good: take it, it needs no training."
    return Verdict(finding, advice)


def _documents_to_tell(own: System, found: Mapping[str, Difference]) -> int:
    """How many more test documents the widest interval needs to tell a difference, of
    TELLS at least; 0 if there are enough. Its width falls with the root of the number.
    """
    needed = 0
    for metric, each in found.items():
        if own.outcomes[metric].of_documents:
            half = (each.high - each.low) / 2
            count = len(own.outcomes[metric].values)
            times = (half / max(abs(each.mean), TELLS)) ** 2
            needed = max(needed, math.ceil(count * (times - 1)))
    digits = 10 ** max(len(str(needed)) - 2, 0)
    return math.ceil(needed / digits) * digits


def _score(system: System, metric: str) -> str:
    return f"{system.outcomes[metric].name} {number(_means(system)[metric])}"


def _means(system: System) -> dict[str, float]:
    return {m: float(np.mean(each.values)) for m, each in system.outcomes.items()}


def _welch(a: Sequence[float], b: Sequence[float]) -> float:
    """Half of the 95 % interval of the difference of two means, by Welch's t-test."""
    parts = [float(np.var(x, ddof=1)) / len(x) for x in (a, b)]
    if not sum(parts):
        return 0.0
    squares = [part**2 / (len(x) - 1) for part, x in zip(parts, (a, b), strict=True)]
    return float(t.ppf(0.975, sum(parts) ** 2 / sum(squares)) * math.sqrt(sum(parts)))


def _of_means(values: np.ndarray) -> tuple[float, float]:
    """The interval of the mean over bootstrap samples of the values."""
    generator, count = np.random.default_rng(0), len(values)
    samples = (generator.integers(count, size=count) for _ in range(RESAMPLES))
    means = [values[sample].mean() for sample in samples]
    low, high = np.percentile(means, INTERVAL)
    return float(low), float(high)
