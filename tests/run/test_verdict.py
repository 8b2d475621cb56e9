"""The report's first sentences: who wins, by more than noise or not, and the advice."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from docjax.run.verdict import (
    BESIDE,
    ENCODER,
    TRAINED,
    WORDS,
    System,
    clear_best,
    difference,
    interval,
    number,
    of_search,
    verdict,
)
from docjax.types import Outcome

TRIED = "On 400 test documents with 4 labels"


def right(share: float, count: int = 400, seed: int = 0) -> Outcome:
    """Which labels are read right: exactly this share, of documents drawn at random."""
    values = np.zeros(count)
    values[: round(share * count)] = 1
    values = np.random.default_rng(seed).permutation(values).tolist()
    return Outcome("accuracy", "classification", "", values, of_documents=True)


def seeds(*values: float) -> Outcome:
    return Outcome("NMI", "clusters", "", values, of_documents=False)


def system(kind: str, name: str, accuracy: Outcome, nmi: Outcome | None = None):
    outcomes = {"eval/c/accuracy": accuracy}
    return System(kind, name, outcomes | ({"eval/k/nmi": nmi} if nmi else {}))


def own(accuracy: Outcome, nmi: Outcome | None = None):
    return system(TRAINED, "the trained model", accuracy, nmi)


def tfidf(accuracy: Outcome, nmi: Outcome | None = None):
    return system(WORDS, "TF-IDF", accuracy, nmi)


def test_scores_have_three_digits():
    assert [number(x) for x in (0.65812, 1.0, 0.0, -0.01)] == [
        *(".658", "1.000", ".000", "-.010")
    ]


def test_the_interval_is_that_of_the_binomial_distribution():
    low, high = interval(right(0.8))
    half = 1.96 * np.sqrt(0.8 * 0.2 / 400)
    assert (low, high) == pytest.approx((0.8 - half, 0.8 + half), abs=0.004)
    assert interval(seeds(0.5, 0.6, 0.4)) == (0.4, 0.6)


def test_documents_are_compared_in_pairs():
    """The same mistakes but one: far less noise than between independent systems."""
    a, b = right(0.8), right(0.8)
    b.values[a.values.index(1)] = 0
    apart, paired = difference(a, right(0.7975, seed=1)), difference(a, b)
    assert paired.mean == pytest.approx(apart.mean) == pytest.approx(0.0025)
    assert paired.high - paired.low < (apart.high - apart.low) / 5


def test_seeds_are_compared_by_a_test_of_means():
    a, b = seeds(0.62, 0.60, 0.61, 0.63, 0.59), seeds(0.55, 0.54, 0.56, 0.55, 0.53)
    assert difference(a, b).low > 0 > difference(b, a).high
    assert difference(a, seeds(0.5, 0.7, 0.6, 0.55, 0.65)).low < 0
    test = ttest_ind(a.values, b.values, equal_var=False).confidence_interval(0.95)
    assert difference(a, b)[1:] == pytest.approx((test.low, test.high))
    same, near = seeds(*[0.7] * 5), seeds(*[0.699] * 5)
    assert difference(same, near).low == 0  # no difference that anybody needs
    assert difference(same, seeds(*[0.6] * 5)).low == pytest.approx(0.1)


def test_a_model_that_is_above_all_others_is_to_be_taken():
    systems = [own(right(0.9)), tfidf(right(0.7, seed=1))]
    found = verdict(TRIED, systems, "trained")
    assert found.finding == (
        f"{TRIED}, the trained model wins. By more than noise: accuracy .900 (TF-IDF .700)."
    )
    assert found.advice == "Take this model."
    assert clear_best(systems) == {"eval/c/accuracy": "the trained model"}


def test_words_that_are_as_good_are_simpler():
    same = right(0.9, count=4000)
    systems = [own(same, seeds(*[0.5] * 5)), tfidf(same, seeds(*[0.503] * 5))]
    found = verdict(TRIED, systems, "trained")
    assert (
        "are level. Within noise: accuracy .900 (TF-IDF .900) and NMI" in found.finding
    )
    assert found.advice == "TF-IDF is as good: take it, it is simpler."
    assert clear_best(systems) == {}


def test_too_few_documents_tell_nothing_and_more_are_asked_for():
    systems = [own(right(0.9, 50)), tfidf(right(0.86, 50, seed=1))]
    found = verdict("On 50 test documents with 4 labels", systems, "trained")
    assert "TF-IDF cannot be told apart. Within noise: accuracy .900" in found.finding
    count = int(found.advice.split("about ")[1].split(" more")[0].replace(",", ""))
    known = difference(systems[0].outcomes["eval/c/accuracy"], right(0.86, 50, seed=1))
    half = (known.high - known.low) / 2
    assert 50 + count >= 50 * (half / 0.04) ** 2 > 50
    assert "Too few test documents to tell" in found.advice
    both = 50 + 2 * count  # a little more, as the draw decides
    enough = [own(right(0.9, both)), tfidf(right(0.86, both, seed=1))]
    assert verdict(TRIED, enough, "trained").advice == "Take this model."


def test_what_is_beaten_beside_a_level_one_is_said():
    mini = system(ENCODER, "all-MiniLM-L6-v2", right(0.9, 4000))
    systems = [own(right(0.9, 4000)), mini, tfidf(right(0.7, 4000, seed=1))]
    found = verdict(TRIED, systems, "trained")
    assert "TF-IDF: worse than the trained model by more than noise." in found.finding
    assert found.advice == "all-MiniLM-L6-v2 is as good: take it, it needs no training."


def test_an_encoder_that_is_better_alone_is_used_as_it_is():
    mini = system(ENCODER, "all-MiniLM-L6-v2", right(0.9, seed=2))
    systems = [own(right(0.6)), mini, tfidf(right(0.5, seed=1))]
    found = verdict(TRIED, systems, "trained")
    assert "all-MiniLM-L6-v2 is better than the trained model" in found.finding
    assert "accuracy .900 (the trained model .600)" in found.finding
    advice = "Training did not help: use all-MiniLM-L6-v2 as it is."
    assert found.advice == advice
    start = [System(TRAINED, "the run's start", mini.outcomes), mini, systems[2]]
    assert verdict(TRIED, start, "start").advice == advice
    beside = system(BESIDE, "all-MiniLM-L6-v2 beside LSA", right(0.99, seed=3))
    found = verdict(TRIED, [*start, beside], "start")
    assert found.advice == (
        "Training did not help. Take all-MiniLM-L6-v2 beside LSA, which needs no training."
    )


def test_where_each_is_better_at_something_the_use_decides():
    systems = [
        own(right(0.9), seeds(0.50, 0.51, 0.52, 0.50, 0.51)),
        tfidf(right(0.7, seed=1), seeds(0.60, 0.61, 0.60, 0.62, 0.60)),
    ]
    found = verdict(TRIED, systems, "trained")
    assert (
        "better in accuracy .900 (TF-IDF .700), but TF-IDF in NMI .606" in found.finding
    )
    assert found.advice == "Take this model for classification, TF-IDF for clusters."
    assert clear_best(systems) == {
        "eval/c/accuracy": "the trained model",
        "eval/k/nmi": "TF-IDF",
    }


def test_of_ways_to_search_the_simplest_of_the_best_is_advised():
    ways = {"words (BM25)": 0.4, "vectors": 0.2, "words and vectors": 0.6}
    systems = [
        system("search", name, right(share, seed=i))
        for i, (name, share) in enumerate(ways.items())
    ]
    found = of_search("On 400 test queries", systems)
    assert found.finding.startswith(
        "On 400 test queries, words and vectors finds the answers best. By more than "
        "noise: accuracy .600 (words (BM25) .400)"
    )
    assert found.advice == "Search by words and vectors."
    level = [systems[0], systems[2]._replace(outcomes=systems[0].outcomes)]
    found = of_search("On 400 test queries", level)
    assert found.advice == "Search by words (BM25)."
    better = system("search", "vectors", right(0.405, seed=0))
    found = of_search("On 400 test queries", [systems[0], better])
    assert found.advice == "Search by words (BM25): as good, and simpler."


def test_a_run_with_nothing_beside_it_says_its_scores():
    found = verdict(TRIED, [own(right(0.9))], "trained")
    assert "has accuracy .900; nothing else was scored." in found.finding
    assert not found.advice
