"""Metrics by hand, and where the weight of the fusion comes from."""

import math

import pytest

from docjax.retrieval import fusion
from docjax.tasks.retrieval import of_queries, retrieval

QRELS = {"q": {"a": 2, "b": 1, "z": 0}, "r": {"c": 1}}
RUN = {"q": {"z": 3.0, "a": 2.0, "y": 1.0}}


def test_metrics_are_those_computed_by_hand():
    ideal = 2 + 1 / math.log2(3)
    expected = {"ndcg@10": (2 / math.log2(3)) / ideal, "mrr@10": 0.5}
    expected |= {"recall@100": 0.5, "map": 0.25}
    for metric, value in expected.items():
        assert of_queries(QRELS, RUN, metric) == pytest.approx({"q": value, "r": 0.0})


def test_systems_are_means_over_all_queries_with_an_answer():
    queries = [str(i) for i in range(10)]
    qrels = {query: {f"d{query}": 1} for query in queries}
    right = {query: {f"d{query}": 1.0, "x": 0.0} for query in queries}
    wrong = {query: {"x": 1.0} for query in queries}
    found = retrieval(right, wrong, qrels)
    assert found["dense/ndcg@10"] == found["dense/map"] == 1
    assert found["bm25/ndcg@10"] == found["bm25/recall@100"] == 0
    assert found["fused/mrr@10"] == 1 and 0.5 < found["fused/weight"] <= 1
    assert len(found) == 13


def test_the_weight_is_chosen_on_the_tuning_queries_where_there_are_any(monkeypatch):
    test, tuning = {"q": {"a": 1}}, {"r": {"b": 1}}
    dense = {"q": {"a": 1.0, "x": 0.0}, "r": {"x": 1.0, "b": 0.0}}
    bm25 = {"q": {"x": 1.0, "a": 0.0}, "r": {"b": 1.0, "x": 0.0}}
    asked = []
    best = fusion.best_weight
    monkeypatch.setattr(
        fusion, "best_weight", lambda *given: asked.append(given[2]) or best(*given)
    )
    found = retrieval(dense, bm25, test, tuning)
    assert asked == [["r"]] and found["fused/weight"] < 0.5
    assert found["fused/mrr@10"] == 0.5  # it suits the other query
