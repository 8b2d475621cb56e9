"""Fusion by hand, and that no query is judged with a weight it took part in."""

import pytest

from docjax.errors import UserError
from docjax.retrieval import fusion


def test_scores_are_scaled_within_a_query_and_weighed():
    dense = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    bm25 = {"q": {"c": 20.0, "d": 10.0}, "other": {"a": 1.0}}
    found = fusion.fuse(dense, bm25, {"q": 0.75})
    assert found == {"q": pytest.approx({"a": 0.75, "b": 0.375, "c": 0.25, "d": 0.0})}
    assert list(found["q"]) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("scores", [{}, {"a": 4.0}, {"a": 4.0, "b": 4.0}])
def test_equal_scores_are_all_the_best(scores):
    assert fusion.scaled(scores) == dict.fromkeys(scores, 1.0)


def score(run):
    """A query wants its own document, whose name is its own, first."""
    return {query: float(next(iter(found)) == query) for query, found in run.items()}


def runs(wins):
    """Runs in which the dense one is right for the queries of `wins` only."""
    dense = {
        q: {q: 1.0, "x": 0.0} if win else {"x": 1.0, q: 0.0} for q, win in wins.items()
    }
    bm25 = {
        q: {"x": 1.0, q: 0.0} if win else {q: 1.0, "x": 0.0} for q, win in wins.items()
    }
    return dense, bm25


def test_the_best_weight_is_the_one_with_the_best_mean():
    wins = {str(i): i < 6 for i in range(10)}
    weight = fusion.best_weight(*runs(wins), list(wins), score)
    assert weight > 0.5
    assert fusion.best_weight(*runs(wins), list("789"), score) < 0.5


def test_a_query_has_no_part_in_its_weight():
    """Changing a query's answer changes the weight of others alone."""
    wins = {str(i): bool(i % 2) for i in range(11)}
    queries = list(wins)
    before = fusion.cross_validated(*runs(wins), queries, score)
    assert set(before) == set(queries) and len(set(before.values())) > 1
    for query in queries:
        after = fusion.cross_validated(
            *runs(wins | {query: not wins[query]}), queries, score
        )
        assert after[query] == before[query]


def test_folds_are_of_one_size_and_a_single_query_is_refused():
    wins = {str(i): True for i in range(7)}
    assert len(fusion.cross_validated(*runs(wins), list(wins), score)) == 7
    with pytest.raises(UserError, match="1 query is too few"):
        fusion.cross_validated(*runs({"0": True}), ["0"], score)
