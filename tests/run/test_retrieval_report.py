"""What a report shows of retrieval, from a small run to the page."""

import dataclasses
import json
import shutil

import pytest

import docjax
from docjax import cli
from docjax.model.inference import local_mesh
from docjax.retrieval import trec
from docjax.run import retrieval_report
from docjax.run.parameters import trained_params
from docjax.run.prepare import prepare
from docjax.run.scoring import Scoring
from docjax.storage import json_file
from docjax.types import RankedQuery, Rankings


@pytest.fixture(scope="module")
def run(tmp_path_factory, one_device):
    pytest.importorskip("bm25s")
    folder = tmp_path_factory.mktemp("runs") / "retriever"
    config = docjax.config.load("retriever", variant="smoke")
    # Few widths of micro-batches: little to compile.
    config.units.words, config.steps = 10, 1
    config.limits.update(segment_tokens=32, query_tokens=32)
    config.limits.update(training_units=5, inference_segments=10)
    config.report.published = {"BM25": {"p@5": 0.123, "map": 0.2, "err": 0.3}}
    docjax.train(config, folder)
    return folder


def data_of(run, prepared=None):
    """A run and its documents with its trained model."""
    prepared = prepared or prepare(json_file.read(run / "config.json"), run)
    params = trained_params(run, prepared.encoder)
    return prepared, Scoring(prepared, local_mesh()).data(params)


@pytest.fixture(scope="module")
def found(run):
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    [report] = retrieval_report.gathered(*data_of(run), last)
    return report, last


def test_each_task_has_its_files_and_the_published_scores_of_its_name(
    run, found, tmp_path
):
    """The figures of a paper are of one collection."""
    copy = shutil.copytree(run, tmp_path / "run")
    shutil.copytree(copy / "retrieval", copy / "again")
    prepared = prepare(json_file.read(run / "config.json"), run)
    tasks = dict.fromkeys(["retrieval", "again"], prepared.config.tasks["retrieval"])
    figures = prepared.config.report.published
    report = dataclasses.replace(prepared.config.report, published={"again": figures})
    config = dataclasses.replace(prepared.config, tasks=tasks, report=report)
    prepared = dataclasses.replace(prepared, run=copy, config=config)
    again = {k.replace("/retrieval/", "/again/"): v for k, v in found[1].items()}
    reports = retrieval_report.gathered(*data_of(run, prepared), found[1] | again)
    assert [each.task for each in reports] == ["retrieval", "again"]
    assert len({each.curves for each in reports}) == 2
    printed = ["BM25 (published)" in each.tables[0].table.rows for each in reports]
    assert printed == [False, True]


def test_systems_stand_beside_published_scores(found):
    report, last = found
    [shown] = report.tables
    metrics = shown.table.by_column()
    assert metrics["p@5"]["BM25 (published)"] == 0.123
    assert metrics["err"] == {"BM25 (published)": 0.3}  # of the paper alone
    assert metrics["map"]["dense"] == last["eval/retrieval/dense/map"]
    for system in ("bm25", "dense", "maxp", "fused", "rrf"):
        score = last[f"eval/retrieval/{system}/ndcg@10"]
        assert metrics["ndcg@10"][system] == score
    assert report.curves.exists()


def test_a_search_takes_the_weight_that_the_run_chose(run, found, tmp_path, capsys):
    weight = found[1]["eval/retrieval/fused/weight"]
    assert weight != 0.5
    corpus, queries = tmp_path / "corpus.jsonl", tmp_path / "queries.jsonl"
    corpus.write_text(
        '{"id": "a", "text": "array shape"}\n{"id": "b", "text": "axis"}\n'
    )
    queries.write_text('{"id": "q", "text": "shape of an array"}\n')
    index = str(tmp_path / "index")
    assert cli.main(["index", str(run), str(corpus), "--output", index]) == 0
    asked = ["search", str(run), index, "--queries", str(queries), "--system", "fused"]
    asked += ["--run", str(tmp_path / "found.trec")]
    for flags, expected in (
        ([], weight),
        (["--scale", "raw"], 0.5),
        (["--weight", "0.25"], 0.25),
    ):
        assert cli.main([*asked, *flags]) == 0
        counts = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert counts["weight"] == expected


def test_searches_show_the_first_documents_with_a_passage_of_theirs(run, found):
    report, _ = found
    records = {
        record["text"]: record
        for record in map(
            json.loads, (run / "retrieval/queries.jsonl").read_text().splitlines()
        )
    }
    ranked = trec.read(run / "retrieval/bm25.trec")
    assert len(report.searches) == 5
    for query in report.searches:
        record = records[query.text]
        assert query.scores["bm25"] == record["ndcg@10"]["bm25"]
        names = list(ranked[record["query"]])[:3]
        relevant = [name in record["relevant"] for name in names]
        assert [hit.is_relevant for hit in query.hits["bm25"]] == relevant
        assert all(hit.title and hit.passage for hit in query.hits["bm25"])
    assert any(
        hit.is_relevant for query in report.searches for hit in query.hits["bm25"]
    )


def test_queries_won_and_lost_are_those_with_the_largest_gains_and_losses():
    gains = [0.0, 0.3, -0.2, 0.1, 0.0, -0.4, 0.7, 0.2, 0.6, 0.5, 0.4]
    queries = [
        RankedQuery(str(gain), "", (), {"bm25": 0.5, "fused": 0.5 + gain})
        for gain in gains
    ]
    rankings = Rankings(queries, {}, "map", ("fused", "bm25"))
    shown = {
        part: [float(query.id) for query in chosen]
        for part, chosen in retrieval_report._shown(rankings).items()
    }
    assert shown["won"] == [0.7, 0.6, 0.5, 0.4, 0.3]
    assert shown["lost"] == [-0.4, -0.2]
    assert shown["searches"] == [gains[place] for place in (0, 2, 5, 7, 10)]


def test_the_page_marks_relevant_documents(run):
    page = (run / "report/index.html").read_text("utf-8")
    assert "<h3>Searches</h3>" in page and '<li class="relevant">' in page
    assert "BM25 (published)" in page and "of its own collection" in page
    assert "test queries, " in page and "finds the answers best" in page
    assert "Search by " in page and "words and vectors" in page


def test_queries_with_odd_line_ends_and_without_trec_runs_are_reported(
    run, found, tmp_path
):
    """As ids with white space leave it, and texts with the line ends of Unicode."""
    _, last = found
    copy = shutil.copytree(run, tmp_path / "run")
    for file in (copy / "retrieval").glob("*.trec"):
        file.unlink()
    file = copy / "retrieval/queries.jsonl"
    records = [json.loads(line) for line in file.read_text().splitlines()]
    for record in records:
        record["text"] += "\u2028and\u0085more"
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    file.write_text("".join(lines), "utf-8")
    [report] = retrieval_report.gathered(*data_of(copy), last)
    assert len(report.searches) == 5 and "\u2028" in report.searches[0].text
    assert all(not hits for query in report.searches for hits in query.hits.values())
