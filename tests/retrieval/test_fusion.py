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


def test_raw_scores_are_weighed_as_they_are():
    dense, bm25 = {"q": {"a": 3.0, "b": 2.0}}, {"q": {"b": 20.0}}
    found = fusion.fuse(dense, bm25, {"q": 0.5}, "raw")
    assert found == {"q": pytest.approx({"b": 11.0, "a": 1.5})}
    with pytest.raises(UserError, match="scale 'minmax' is none of min-max, raw"):
        fusion.fuse(dense, bm25, {"q": 0.5}, "minmax")


def test_inner_products_below_zero_do_not_lose_to_documents_that_are_missing():
    dense, bm25 = {"q": {"a": -1.0, "b": -2.0}}, {"q": {"c": 0.1}}
    assert list(fusion.fuse(dense, bm25, {"q": 1.0}, "raw")["q"]) == ["a", "b", "c"]


def test_ranks_are_fused_without_a_weight():
    dense, bm25 = {"q": {"a": 9.0, "b": 8.0}}, {"q": {"b": 1.0, "c": 0.5}}
    found = fusion.by_ranks(dense, bm25, ["q"])
    expected = {"b": 1 / 62 + 1 / 61, "a": 1 / 61, "c": 1 / 62}
    assert found == {"q": pytest.approx(expected)} and list(found["q"]) == list("bac")


def test_as_many_documents_remain_as_are_asked_for():
    """More than either run has, or than TOP, where so many are asked for."""
    names = [f"d{i}" for i in range(1500)]
    dense = {"q": {name: 3000.0 - i for i, name in enumerate(names)}}
    bm25 = {"q": {f"{name} of words": score for name, score in dense["q"].items()}}
    for found, top in (
        (fusion.fuse(dense, bm25, {"q": 0.5}), 1000),
        (fusion.fuse(dense, bm25, {"q": 0.5}, top=2500), 2500),
        (fusion.fuse(dense, bm25, {"q": 0.5}, top=3), 3),
        (fusion.by_ranks(dense, bm25, ["q"]), 1000),
        (fusion.by_ranks(dense, bm25, ["q"], 2500), 2500),
    ):
        assert len(found["q"]) == top


@pytest.mark.parametrize("scores", [{}, {"a": 4.0}, {"a": 4.0, "b": 4.0}])
def test_equal_scores_are_all_the_best(scores):
    assert fusion.min_max(scores) == dict.fromkeys(scores, 1.0)


def score(run):
    """A query wants its own document, whose name is its own, first."""
    return {query: float(next(iter(found)) == query) for query, found in run.items()}


def table(wins, queries=None):
    """The table of runs in which the dense one is right for `wins` only."""
    dense = {
        q: {q: 1.0, "x": 0.0} if win else {"x": 1.0, q: 0.0} for q, win in wins.items()
    }
    bm25 = {
        q: {"x": 1.0, q: 0.0} if win else {q: 1.0, "x": 0.0} for q, win in wins.items()
    }
    return fusion.table(dense, bm25, queries or list(wins), score)


def test_the_best_weight_is_the_one_with_the_best_mean():
    wins = {str(i): i < 6 for i in range(10)}
    assert fusion.best_weight(table(wins)) > 0.5
    assert fusion.best_weight(table(wins, list("789"))) < 0.5


def test_a_query_has_no_part_in_its_weight():
    """Changing a query's answer changes the weight of others alone."""
    wins = {str(i): bool(i % 2) for i in range(11)}
    before = fusion.cross_validated(table(wins))
    assert set(before) == set(wins) and len(set(before.values())) > 1
    for query, win in wins.items():
        after = fusion.cross_validated(table(wins | {query: not win}))
        assert after[query] == before[query]


def test_given_folds_share_a_weight_that_others_choose():
    wins = {"a": True, "b": True, "c": False}
    found = fusion.cross_validated(table(wins), [["a", "b"], ["c"]])
    assert found["a"] == found["b"] < 0.5 < found["c"]
    with pytest.raises(UserError, match="all 3 judged queries are in one fold"):
        fusion.cross_validated(table(wins), [["a", "b", "c"], ["unjudged"]])


def test_a_single_query_is_refused():
    assert len(fusion.cross_validated(table({str(i): True for i in range(7)}))) == 7
    with pytest.raises(UserError, match="1 query is too few"):
        fusion.cross_validated(table({"0": True}))
