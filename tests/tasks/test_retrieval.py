"""Metrics by hand, and where the weight of the fusion comes from."""

import json
import lzma
import math
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from docjax.errors import UserError
from docjax.retrieval import bm25_files, fusion, systems
from docjax.retrieval.measures import METRICS, of_queries, of_systems
from docjax.retrieval.systems import fused
from docjax.tasks.retrieval import Retrieval, scores
from docjax.types import Qrels

QRELS = {"q": {"a": 2, "b": 1, "z": 0}, "r": {"c": 1}}
RUN = {"q": {"z": 3.0, "a": 2.0, "y": 1.0}}


def test_metrics_are_those_computed_by_hand():
    ideal = 2 + 1 / math.log2(3)
    expected = {"ndcg@10": (2 / math.log2(3)) / ideal, "mrr@10": 0.5}
    expected |= {"recall@100": 0.5, "map": 0.25}
    for metric, value in expected.items():
        assert of_queries(QRELS, RUN, metric) == pytest.approx({"q": value, "r": 0.0})


def scored(ranked, test):
    return scores(ranked, of_systems(ranked.runs, test), test)


def test_systems_are_means_over_all_queries_with_an_answer():
    queries = [str(i) for i in range(10)]
    qrels = {query: {f"d{query}": 1} for query in queries}
    right = {query: {f"d{query}": 1.0, "x": 0.0} for query in queries}
    wrong = {query: {"x": 1.0} for query in queries}
    found = scored(fused({"dense": right, "bm25": wrong}, qrels), qrels)
    assert found["dense/ndcg@10"] == found["dense/map"] == 1
    assert found["bm25/ndcg@10"] == found["bm25/recall@100"] == 0
    assert found["fused/mrr@10"] == 1 and 0.5 < found["fused/weight"] <= 1
    assert len(found) == 4 * 10 + 1


def test_queries_for_which_a_system_finds_nothing_are_counted(caplog):
    values = of_systems({"bm25": RUN | {"r": {}}}, QRELS)
    assert values["bm25"]["mrr@10"] == {"q": 0.5, "r": 0.0}
    assert "bm25 has no documents for 1 of 2 test queries: they cou" in caplog.text
    assert set(of_systems({"bm25": {"q": {}}}, QRELS)["bm25"]["map"].values()) == {0.0}


def test_the_weight_is_chosen_on_the_tuning_queries_where_there_are_any(monkeypatch):
    test, tuning = {"q": {"a": 1}}, {"r": {"b": 1}}
    dense = {"q": {"a": 1.0, "x": 0.0}, "r": {"x": 1.0, "b": 0.0}}
    bm25 = {"q": {"x": 1.0, "a": 0.0}, "r": {"b": 1.0, "x": 0.0}}
    asked = []
    table = fusion.table
    monkeypatch.setattr(
        fusion, "table", lambda *given: asked.append(given[2]) or table(*given)
    )
    found = scored(fused({"dense": dense, "bm25": bm25}, test, tuning), test)
    assert asked == [["r"]] and found["fused/weight"] < 0.5
    assert found["fused/mrr@10"] == 0.5  # it suits the other query


@pytest.fixture
def data(given, document):
    """Documents that words find in one order and vectors in another.

    "cat" is the query of a, which links to b and to one of another part; "dog" is that
    of c.
    """
    documents = [
        document("a", "cats", query="cat", links=("b", "t")),
        document("b", "fish"),
        document("c", "a dog and a cat", query="dog"),
        document("t", "cats", split="train", query="cat"),
    ]
    vectors = np.array([[2, 0], [3, 1], [0, 2], [9, 9]], np.float32)
    return given(documents, vectors, cat=[1, 0], dog=[0, 1])


def test_own_queries_are_answered_by_their_documents_and_by_linked_ones(data):
    Retrieval().check(data, "test")
    assert data.encoded == []
    found = Retrieval()(data, "test")
    assert data.encoded == ["a", "b", "c"]  # the candidates: no other part
    ideal = 2 + 1 / math.log2(3)
    dense = ((1 + 2 / math.log2(3)) / ideal + 1) / 2  # b, a for the cat; c for the dog
    assert found["dense/ndcg@10"] == pytest.approx(dense)
    assert found["dense/mrr@10"] == 1
    words = (2 / ideal + 1) / 2  # nothing says cat in b
    assert found["bm25/ndcg@10"] == pytest.approx(words)
    assert found["bm25/recall@100"] == pytest.approx((0.5 + 1) / 2)
    assert set(found) >= {"fused/ndcg@10", "fused/weight"}


def test_vectors_are_compared_as_the_model_was_trained(data):
    assert Retrieval()(data, "test")["dense/ndcg@10"] < 1
    data.similarity = "cosine"  # b is longer than a, and not as near
    assert Retrieval()(data, "test")["dense/ndcg@10"] == 1


def test_vectors_that_are_not_finite_are_refused(given, document):
    """Of a document, of a passage alone, and of a query."""
    documents = [document("a", "cats", query="cat"), document("b", query="dog")]
    words = dict(cat=[1, 0], dog=[0, 1])
    vectors = np.array([[1, 0], [np.nan, 1]], np.float32)
    for task in (Retrieval(), Retrieval(passages=True)):
        with pytest.raises(UserError, match="the vector of document 'b' is not finite"):
            task(given(documents, vectors, **words), "test")
    good = given(documents, np.eye(2, dtype=np.float32), **words)
    good.words["dog"] = [np.inf, 1]
    with pytest.raises(UserError, match="the vector of query 'b' is not finite"):
        Retrieval()(good, "test")
    good.words["dog"] = [0, 1]
    encode = good.encode
    good.encode = lambda *all, **options: (
        each._replace(passages=each.passages * np.nan)
        for each in encode(*all, **options)
    )
    with pytest.raises(UserError, match="the vector of document 'a' is not finite"):
        Retrieval(passages=True)(good, "test")


def test_documents_are_indexed_by_their_words_once_a_run(data, monkeypatch):
    search, calls = bm25_files.search, []
    monkeypatch.setattr(
        bm25_files, "search", lambda *a, **k: calls.append(1) or search(*a, **k)
    )
    task = Retrieval()
    assert task(data, "test") == task(data, "test") and calls == [1]


def test_documents_without_queries_are_one_line(data):
    with pytest.raises(UserError, match='0 validation documents have a "query"'):
        Retrieval().check(data, "validation")
    with pytest.raises(UserError, match='1 train documents have a "query".*collection'):
        Retrieval().check(data, "train")


@pytest.fixture
def folder(tmp_path):
    """The same documents as a collection of their own, with other judgements."""
    write(tmp_path / "corpus.jsonl", a="cats", b="fish", c="a dog and a cat")
    write(tmp_path / "queries.jsonl", x="cat", y="dog", z="cat")
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels/test.tsv").write_text("x\tb\t1\ny\tc\t1\n")
    return tmp_path


def write(path, **texts):
    lines = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    path.write_text("\n".join(lines))


def of_file(folder, run, compare=None, fold=None) -> dict[str, float]:
    task = Retrieval(str(folder), fold=fold, compare=compare)
    return task.of_file(run, None)


def test_a_folder_brings_its_own_documents_and_judgements(data, folder):
    task = Retrieval(str(folder))
    task.check(data, "test")
    found = task(data, "test")
    assert data.encoded == []  # the run's own vectors are not asked for
    assert found["dense/ndcg@10"] == 1 and found["bm25/ndcg@10"] == 0.5


def test_runs_curves_and_scores_by_query_are_kept(data, folder, tmp_path):
    found = Retrieval(str(folder))(data, "test")
    for system in ("bm25", "dense", "fused", "rrf"):
        (tmp_path / "a.trec").write_text(data.files[f"{system}.trec"])
        kept = of_file(folder, tmp_path / "a.trec")
        assert kept["run/ndcg@10"] == pytest.approx(found[f"{system}/ndcg@10"])
    lines = data.files["curves.csv"].splitlines()
    assert lines[0] == "weight,fused" and len(lines) == 1 + len(fusion.WEIGHTS)
    by_query = [json.loads(x) for x in data.files["queries.jsonl"].split("\n")[:-1]]
    assert [(one["query"], one["text"]) for one in by_query] == [
        ("x", "cat"),
        ("y", "dog"),
    ]
    for name in METRICS:
        for system in ("bm25", "dense", "fused", "rrf"):
            mean = sum(one[name][system] for one in by_query) / 2
            assert mean == pytest.approx(found[f"{system}/{name}"])


def test_the_runs_of_folds_are_joined_into_one(data, folder, tmp_path):
    (folder / "qrels/test.tsv").write_text("x\tb\t1\ny\tc\t1\nz\ta\t1\n")
    (folder / "folds.json").write_text('[["x"], ["y"], ["z"]]')
    joined, by_fold = {"dense": "", "fused": ""}, []
    for fold in range(3):
        by_fold.append(Retrieval(str(folder), fold=fold)(data, "test"))
        for system in joined:
            joined[system] += data.files[f"{system}.trec"]
    for system, text in joined.items():
        (tmp_path / "all.trec").write_text(text)
        found = of_file(folder, tmp_path / "all.trec")["run/ndcg@10"]
        mean = sum(one[f"{system}/ndcg@10"] for one in by_fold) / 3
        assert found == pytest.approx(mean) and 0 < found < 1


def test_an_id_with_white_space_costs_the_trec_runs_alone(data, folder, caplog):
    write(folder / "queries.jsonl", **{"x": "cat", "y y": "dog"})
    (folder / "qrels/test.tsv").write_text("x\tb\t1\ny y\tc\t1\n")
    Retrieval(str(folder))(data, "test")
    assert set(data.files) == {"curves.csv", "queries.jsonl"}
    assert "ids have white space: no TREC runs are written" in caplog.text


def test_validation_has_the_other_split_of_a_folder(data, folder):
    task = Retrieval(str(folder))
    with pytest.raises(UserError, match="no queries for a validation metric: give"):
        task.check(data, "validation")
    (folder / "qrels/dev.tsv").write_text("z\ta\t1\ny\tc\t1\nx\ta\t1\n")
    (folder / "qrels/test.tsv").write_text("y\tc\t1\n")
    task.check(data, "validation")
    found = task(data, "validation")
    assert found["dense/mrr@10"] == 0.5  # b is first for both cats
    assert found["bm25/mrr@10"] == 1
    assert task(data, "test")["bm25/mrr@10"] == 1


def test_a_run_is_compared_on_the_test_queries_alone(data, folder, tmp_path):
    write(folder / "queries.jsonl", x="cat", y="dog", z="cat", w="cat")
    (folder / "qrels/dev.tsv").write_text("z\ta\t1\nw\ta\t1\n")
    ranked = tmp_path / "base.trec"
    ranked.write_text("y Q0 c 1 2 s\nx Q0 a 1 2 s\n")
    task = Retrieval(str(folder), compare=str(ranked))
    for part in ("validation", "test"):
        task.check(data, part)
        found = task(data, part)
        assert ("bm25/ndcg@10_gain" in found) == (part == "test")
    ranked.write_text("z Q0 c 1 2 s\n")
    with pytest.raises(
        UserError, match="compare .*: none of its 1 queries is one of the"
    ):
        task.check(data, "test")


def test_passages_rank_documents_by_their_best_one(data, folder):
    found = Retrieval(str(folder), passages=True)(data, "test")
    expected = (1 / math.log2(3) + 1 / math.log2(4)) / 2  # c, b, a and b, a, c
    assert found["maxp/ndcg@10"] == pytest.approx(expected)
    assert found["maxsim/ndcg@10"] == pytest.approx(expected)
    assert {"fused_maxp/weight", "fused_maxsim/map", "rrf/p@5"} <= set(found)


def test_fused_passages_with_the_weight_of_vectors_alone_are_the_passages(
    data, folder, monkeypatch
):
    monkeypatch.setattr(fusion, "WEIGHTS", (1.0,))
    Retrieval(str(folder), passages=True)(data, "test")
    read = lambda system: [
        line.split()[:4] for line in data.files[f"{system}.trec"].splitlines()
    ]
    for part, system in systems.FUSED.items():
        assert read(part) == read(system) and len(read(part)) == 6


def test_missing_answers_of_a_folder_are_told_before_anything_is_encoded(
    data, folder, caplog
):
    task = Retrieval(str(folder))
    write(folder / "corpus.jsonl", a="cats", b="fish")
    task.check(data, "test")
    assert "1 of 2 judged documents are not in the corpus" in caplog.text
    write(folder / "corpus.jsonl", a="cats")
    with pytest.raises(UserError, match="2 of 2 judged .* 'b' is one"):
        task.check(data, "test")


def test_a_run_in_a_file_is_scored_and_compared(folder, tmp_path, caplog):
    (tmp_path / "a.trec").write_text("x Q0 b 1 2 s\nx Q0 a 2 1 s\n")
    (tmp_path / "b.trec").write_text("x Q0 a 1 2 s\nx Q0 b 2 1 s\ny Q0 c 1 1 s\n")
    other = str(tmp_path / "b.trec")
    with caplog.at_level("INFO"):
        found = of_file(folder, tmp_path / "a.trec", other)
    assert "run has no documents for 1 of 2 test queries" in caplog.text
    assert (
        "a.trec: 1 of 2 ranked documents have no judgement: they count" in caplog.text
    )
    assert found["run/mrr@10"] == 0.5 and found["compared/mrr@10"] == 0.75
    assert found["run/mrr@10_gain"] == -0.25
    assert "compared/mrr@10_gain" not in found
    (folder / "queries.jsonl").unlink()
    (folder / "corpus.jsonl").unlink()  # neither is read
    assert of_file(folder, tmp_path / "a.trec", other) == found
    (folder / "folds.json").write_text('[["x"], ["y"], []]')
    assert of_file(folder, tmp_path / "b.trec", fold=1)["run/mrr@10"] == 1
    assert of_file(folder, tmp_path / "b.trec", fold=0)["run/mrr@10"] == 0.5
    with pytest.raises(UserError, match="--compare bm25: .* give a TREC run, or a mod"):
        of_file(folder, tmp_path / "a.trec", "bm25")
    (tmp_path / "b.trec").write_text("x Q0 b 1 2 s\nz Q0 b 1 2 s\nw Q0 b 1 2 s\n")
    caplog.clear()
    with caplog.at_level("INFO"):
        of_file(folder, tmp_path / "b.trec")
    assert "b.trec: 2 of its 3 queries are not test queries: left out" in caplog.text
    assert "no judgement" not in caplog.text
    (tmp_path / "a.trec").write_text("z Q0 b 1 2 s\n")
    with pytest.raises(
        UserError, match="a.trec: none of its 1 queries is one of the 2"
    ):
        of_file(folder, tmp_path / "a.trec")


def test_systems_are_compared_with_one_of_them(data, folder):
    task = Retrieval(str(folder), compare="bm25")
    task.check(data, "test")
    found = task(data, "test")
    assert found["dense/ndcg@10_gain"] == 0.5
    assert "bm25/ndcg@10_gain" not in found and "fused/map_gain_p" in found
    with pytest.raises(UserError, match="bm52: no such file; give a TREC run or one"):
        Retrieval(str(folder), compare="bm52").check(data, "test")
    with pytest.raises(UserError, match="compare maxp: needs passages: set"):
        Retrieval(str(folder), compare="maxp").check(data, "test")
    Retrieval(str(folder), compare="maxp", passages=True).check(data, "test")


def test_one_query_alone_is_told_before_anything_is_encoded(data, folder):
    (folder / "qrels/test.tsv").write_text("x\ta\t1\n")
    with pytest.raises(UserError, match="1 query is too few to choose a weight"):
        Retrieval(str(folder)).check(data, "test")
    (folder / "qrels/dev.tsv").write_text("y\ta\t1\n")
    Retrieval(str(folder)).check(data, "test")  # the other split chooses
    with pytest.raises(UserError, match="1 query is too few to choose a weight"):
        Retrieval(str(folder)).check(data, "validation")


def made_up() -> Qrels:
    """Judgements with grades from -1 to 3."""
    generator = np.random.default_rng(0)
    drawn = lambda: {f"d{d}": int(generator.integers(-1, 4)) for d in range(60)}
    return {str(query): drawn() for query in range(20)}


def of_trec(path: Path) -> Qrels:
    """A file of judgements of the deep learning track."""
    qrels: Qrels = {}
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for query, _, document, grade in map(str.split, lines):
            qrels.setdefault(query, {})[document] = int(grade)
    return qrels


@pytest.mark.parametrize("name", ["", "dl19-doc", "dl20-doc", "dl19-passage"])
def test_metrics_are_those_of_trec_eval(name, request):
    """Ties, missing queries, documents without a judgement and negative grades."""
    qrels = made_up()
    if name:
        data = request.getfixturevalue("shared") / "data/trec_topics_qrels"
        qrels = of_trec(data / f"qrels.{name}.txt.xz")
    generator = np.random.default_rng(1)
    run = {}
    for query in list(qrels)[:-5]:
        ids = [*qrels[query], *(f"new{number}" for number in range(200))]
        chosen = generator.permutation(ids)[:1200].tolist()
        tied = 5 + generator.integers(20, size=len(chosen))
        scores = tied + 1e-9 * np.arange(len(chosen))
        run[query] = dict(zip(chosen, scores.tolist(), strict=True))
    names = {"ndcg@10": "ndcg_cut_10", "ndcg@20": "ndcg_cut_20", "p@5": "P_5"}
    names |= {"p@20": "P_20", "map": "map", "recall@100": "recall_100"}
    names |= {"recall@1000": "recall_1000", "p@10": "P_10"}
    judge = pytrec_eval.RelevanceEvaluator(qrels, set(pytrec_eval.supported_measures))
    known = judge.evaluate(run)
    for metric, theirs in names.items():
        for query, value in of_queries(qrels, run, metric).items():
            expected = known[query][theirs] if query in run else 0
            assert value == pytest.approx(expected, abs=1e-6), (metric, query)
    for cutoff in (10, 100):
        for query, value in of_queries(qrels, run, f"mrr@{cutoff}").items():
            first = known[query]["recip_rank"] if query in run else 0
            assert value == pytest.approx(first if first * cutoff > 0.99 else 0)
