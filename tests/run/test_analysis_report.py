"""What a report shows of the analyses, from a small run to the page."""

import csv
import json

import pytest
from docjax.run.analysis_report import RATIO, gathered, of_vectors, scores_alone

import docjax
from docjax.tasks.clustering import Clustering
from docjax.tasks.few_shot import FewShot
from docjax.tasks.links import Links
from docjax.tasks.matching import Matching
from docjax.tasks.probe import Probe
from docjax.tasks.redundancy import Redundancy
from docjax.tasks.sentence_similarity import SentenceSimilarity
from docjax.tasks.word_attention import WordAttention

SHOTS = ["2", "3", "all"]


@pytest.fixture(scope="module")
def run(tmp_path_factory, nltk_data, one_device):
    folder = tmp_path_factory.mktemp("runs") / "docsplit"
    config = docjax.config.load("docsplit", variant="smoke")
    # One kind of micro-batch, one loss: little to compile.
    config.objective = config.objective.contrastive
    config.encoder.segment.masked_lm = False
    config.limits.segment_tokens = config.limits.query_tokens = 16
    config.steps = 1
    probe = dict(fn="docjax.tasks.probe.Probe", epochs=2, width=8)
    config.tasks = dict(
        shots=dict(
            fn="docjax.tasks.few_shot.ShotsCurve",
            shots=(2, 3, 1000),  # no class has a thousand documents
            repeats=2,
            few=probe,
            full=dict(fn="docjax.tasks.classification.Linear"),
        ),
        repeated=dict(
            fn="docjax.tasks.redundancy.Redundancy", most=20, lexicons=nltk_data
        ),
        alike=dict(
            fn="docjax.tasks.sentence_similarity.SentenceSimilarity", most=20, pairs=50
        ),
        attention=dict(
            fn="docjax.tasks.word_attention.WordAttention", most=20, lexicons=nltk_data
        ),
        probe=probe,
        few=dict(
            fn="docjax.tasks.few_shot.FewShot", shots=2, repeats=2, classifier=probe
        ),
    )
    docjax.train(config, folder)
    return folder


@pytest.fixture(scope="module")
def lines(run) -> list[dict]:
    text = (run / "metrics.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, text) if "eval/shots/2/accuracy" in line]


def test_every_analysis_is_a_metric_before_and_after_training(lines):
    names = {name for name in lines[-1] if name.startswith("eval/")}
    assert {f"eval/shots/{k}/accuracy" for k in SHOTS} <= names
    assert {"eval/alike/inner", "eval/alike/inter", "eval/attention/noun"} <= names
    assert lines[0]["step"] == 0 < lines[-1]["step"]
    assert lines[0]["eval/repeated/all"] == lines[-1]["eval/repeated/all"] >= 1
    assert lines[0]["eval/attention/noun"] != lines[-1]["eval/attention/noun"]


def test_the_page_has_the_tables_beside_what_was_published(run, lines):
    page = (run / "report/index.html").read_text("utf-8")
    for words in (
        "<h3>Few documents with labels</h3>",
        "<h3>Attention by part of speech</h3>",
        "nouns, times before training",
        "<h3>Redundancy</h3>",
        "20News (published)",
        "SimCSE_long (published)",
        "SimLTE, more than (published)</th>",
        "<h3>A probe of the vectors</h3>",
        f"{100 * lines[-1]['eval/probe/macro_f1']:.2f}</td>",
        "<td>50.14</td>",  # DocSplit, FakeNews, all
        f"{100 * lines[-1]['eval/few/macro_f1']:.2f}</td>",
        f"{100 * lines[-1]['eval/probe/accuracy']:.2f}</td>",
        "<td>60.04</td>",  # the same, accuracy
        "<td>24.65</td>",  # DocSplit, FakeNews, few
        "these documents, Acc</th>",
        "FakeNews, F1</th>",
        "DocSplit over SimCSE (published)",
        f"{lines[-1]['eval/alike/inner']:.2f}</td>",
        f"{lines[-1]['eval/attention/verb']:.4g}",
    ):
        assert words in page, words
    assert page.count("before training</th>") >= 3
    scores = page[page.index('<section id="scores">') : page.index('id="training"')]
    assert "repeated" not in scores and "shots" not in scores


def test_figures_have_their_numbers_beside_them(run, lines):
    with (run / "figures/shots.csv").open() as file:
        rows = list(csv.DictReader(file))
    after = [row for row in rows if row["vectors"] == "after training"]
    assert [row["documents"] for row in after] == SHOTS
    for row in after:
        expected = lines[-1][f"eval/shots/{row['documents']}/accuracy"]
        assert float(row["accuracy"]) == pytest.approx(expected)
    assert (run / "figures/shots.png").exists()
    with (run / "figures/word_attention.csv").open() as file:
        kinds = {(row["model"], row["part of speech"]) for row in csv.DictReader(file)}
    assert {("before training", "noun"), ("after training", "verb")} <= kinds


def test_baselines_are_scored_with_few_shots_but_not_analysed(run):
    known = json.loads((run / "baselines.json").read_text())
    [reduced] = [row for name, row in known.items() if "dimensions" in name]
    assert set(reduced) >= {f"eval/shots/{k}/accuracy" for k in SHOTS}
    assert not any("repeated" in name for row in known.values() for name in row)


def test_two_tasks_of_a_kind_are_both_shown(tmp_path):
    tasks = {
        "near": WordAttention(tag=list),
        "far": WordAttention(tag=list),
        "texts": Redundancy(tag=list),
        "alike": SentenceSimilarity(),
        "others": SentenceSimilarity(most=1),
        "linear": FewShot(),  # no probe: a score, and not one of the papers'
    }
    before, after = (
        {f"eval/{name}/noun": value for name, value in zip(("near", "far"), values)}
        for values in ((0.2, 0.1), (0.3, 0.4))
    )
    before |= {"eval/texts/all": 1.5, "eval/alike/inner": 0.7, "eval/others/inner": 0.6}
    before |= {"eval/linear/macro_f1": 0.5}
    scores = {"before training": before, "after training": after}
    found = gathered(tasks, scores, tmp_path)
    assert found.attention["noun"] == {
        "before training (near)": 0.2,
        "after training (near)": 0.3,
        "before training (far)": 0.1,
        "after training (far)": 0.4,
    }
    ratios = found.attention[RATIO]
    assert ratios["after training (near)"] == pytest.approx(1.5)
    assert ratios["after training (far)"] == pytest.approx(4)
    assert found.redundancy["all"]["this run"] == 1.5  # one task needs no name
    assert found.similarity["inner"]["before training (others)"] == 0.6
    assert not found.few and not found.full


def test_links_stand_beside_docsplit_s_table(tmp_path):
    scores = {"after training": {"eval/cited/accuracy": 0.61, "eval/cited/f1": 0.6}}
    found = gathered({"cited": Links("pairs.tsv")}, scores, tmp_path)
    assert found.links["Acc"]["after training"] == pytest.approx(61)
    assert found.links["Acc"]["DocSplit_long (published)"] == 59.89
    assert found.links["F1"] == {"after training": 60.0}
    assert scores_alone({"cited": Links("pairs.tsv")}, scores) == scores


def test_the_average_improvement_is_that_of_training_and_the_papers(tmp_path):
    rows = {"before training": 0.4, "after training": 0.5, "TF-IDF": 0.6}
    scores = {
        row: {"eval/probe/accuracy": 0.7, "eval/probe/macro_f1": value}
        for row, value in rows.items()
    }
    found = gathered({"probe": Probe()}, scores, tmp_path)
    cells = found.improvement["all documents"]
    assert cells["probe: after training over before training"] == pytest.approx(25)
    assert round(cells["DocSplit over SimCSE (published)"], 1) == 3.9
    few = found.improvement["few documents"]
    assert round(few["DocSplit_long over Longformer (published)"], 1) == 24.3
    left_out = "DocSplit over INSTRUCTOR without 20News (published)"
    assert round(cells[left_out], 1) == 3.4
    assert left_out not in few  # no paper prints it
    assert set(few) < set(cells)
    del scores["before training"]
    assert not gathered({"probe": Probe()}, scores, tmp_path).improvement


def test_a_run_without_such_tasks_has_no_analyses(tmp_path):
    tasks, scores = {"few": FewShot()}, {"after": {"eval/few/macro_f1": 0.5}}
    assert gathered(tasks, scores, tmp_path) is None


def test_scores_are_what_no_analysis_shows():
    tasks = {"a": Redundancy(), "ab": Clustering()}
    scores = {"after": {"eval/a/all": 1.5, "eval/ab/nmi": 0.5}}
    assert scores_alone(tasks, scores) == {"after": {"eval/ab/nmi": 0.5}}


def test_what_a_task_chooses_is_no_score():
    chosen = {"eval/retrieval/fused/weight": 0.4, "eval/matching/threshold": 0.5}
    scores = {"after": {"eval/retrieval/fused/map": 0.8} | chosen}
    assert scores_alone({}, scores) == {"after": {"eval/retrieval/fused/map": 0.8}}


def test_pairs_have_two_scores_and_a_table_of_their_own(tmp_path):
    tasks = {"pairs": Matching(), "clustering": Clustering()}
    names = [
        f"{m}{at}"
        for m in ("precision", "recall", "f1", "accuracy")
        for at in ("", "@0.25", "@0.5", "@0.75")
    ]
    metrics = {f"eval/pairs/{name}": i / 100 for i, name in enumerate(names)}
    metrics |= {"eval/pairs/threshold": 0.375, "eval/clustering/nmi": 0.5}
    scores = {"after training": metrics}
    assert set(scores_alone(tasks, scores)["after training"]) == {
        *("eval/pairs/f1", "eval/pairs/accuracy", "eval/clustering/nmi")
    }
    found = gathered(tasks, scores, tmp_path)
    row = "after training, above 0.38 (chosen)"
    assert {column: cells[row] for column, cells in found.pairs.items()} == {
        "P": 0.0,
        "R": 0.04,
        "F1": 0.08,
        "Acc": 0.12,
    }
    assert found.pairs["Acc"]["after training, above 0.75"] == 0.15
    assert len(found.pairs["P"]) == 4 and found.shots == {}
    metrics |= {"eval/uniform/accuracy@0.75": 0.5, "eval/uniform/threshold": 0.1}
    two = gathered(tasks | {"uniform": Matching()}, scores, tmp_path)
    assert two.pairs["Acc"]["after training (pairs), above 0.75"] == 0.15
    assert two.pairs["Acc"]["after training (uniform), above 0.75"] == 0.5
    assert gathered({"clustering": Clustering()}, scores, tmp_path) is None


def test_a_baseline_is_scored_by_its_vectors_in_one_order_alone():
    tasks = {"matching": Matching(), "words": Redundancy()}
    orders = {each: Matching(shuffled=each) for each in ("sections", "segments")}
    assert list(of_vectors(tasks | orders)) == ["matching"]
