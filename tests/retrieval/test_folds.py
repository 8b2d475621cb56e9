"""Folds: drawn, read from a file, and taking turns."""

import itertools
from pathlib import Path

import pytest

from docjax.errors import UserError
from docjax.retrieval import folds

ROBUST04 = Path(__file__).parents[3] / "shared/data/trec_topics_qrels"


def test_drawn_folds_are_of_one_size_and_hold_each_query_once():
    queries = [str(i) for i in range(13)]
    found = folds.drawn(queries)
    assert sorted(map(len, found)) == [2, 2, 3, 3, 3]
    assert sorted(itertools.chain(*found)) == sorted(queries)
    assert found == folds.drawn(queries) != folds.drawn(queries, seed=1)
    assert len(folds.drawn(queries[:3])) == 3


def test_one_fold_tests_the_next_chooses_and_the_others_train():
    four = [["a"], ["b"], ["c"], ["d", "e"]]
    assert folds.rotation(four, 3) == ({"b", "c"}, {"a"}, {"d", "e"})
    assert folds.rotation(four, 0) == ({"c", "d", "e"}, {"b"}, {"a"})
    for wrong in (-1, 4):
        with pytest.raises(UserError, match=f"fold {wrong} of 4 .* from 0 to 3"):
            folds.rotation(four, wrong)
    with pytest.raises(UserError, match="fold 0 of 2 folds: give 3"):
        folds.rotation(four[:2], 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1}', "not a JSON array"),
        ('[["a"], "b"]', "two or more lists of query ids"),
        ('[["a", "b"]]', "two or more lists"),
        ('[["a"], [3.5]]', "two or more lists"),
        ('[["a", "b"], ["a"]]', "query 'a' is in the folds 2 times: leave it"),
        (
            '[["a"], ["x"]]',
            "1 of 2 judged queries are in no fold, 'b' is the first: add",
        ),
    ],
)
def test_mistakes_in_a_file_are_one_line(tmp_path, text, said):
    (tmp_path / "folds.json").write_text(text)
    with pytest.raises(UserError, match=said):
        folds.read(tmp_path / "folds.json", ["a", "b"])


def test_ids_may_be_whole_numbers(tmp_path):
    (tmp_path / "folds.json").write_text('[[1, "2"], [30]]')
    assert folds.read(tmp_path / "folds.json", ["1", "2", "30"]) == [["1", "2"], ["30"]]


def test_queries_without_a_judgement_are_counted(tmp_path, caplog):
    (tmp_path / "folds.json").write_text('[["a", "x"], ["b", "y"]]')
    folds.read(tmp_path / "folds.json", ["a", "b"])
    assert "2 of 4 queries in the folds have no judgement: left out" in caplog.text


@pytest.mark.skipif(not ROBUST04.exists(), reason="needs the folds of Robust04")
def test_the_folds_of_robust04_hold_its_topics():
    from docjax.data.sources.topics import topics

    names = [each.id for each in topics(str(ROBUST04 / "topics.robust04.txt.xz"))]
    found = folds.read(ROBUST04 / "robust04-paper2-folds.json", names)
    assert len(found) == 5 and sorted(itertools.chain(*found)) == sorted(names)
    assert len(names) == 250
