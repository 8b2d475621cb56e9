"""What a report shows of tasks, from a small run to the page."""

import csv
import json

import pytest

import docjax
from docjax.run import task_report
from docjax.run.task_report import published, tables
from docjax.tasks.clustering import Clustering
from docjax.tasks.few_shot import FewShot, ShotsCurve
from docjax.tasks.links import Links
from docjax.tasks.matching import Matching
from docjax.tasks.probe import GAIN, Probe
from docjax.tasks.redundancy import Redundancy
from docjax.tasks.retrieval import Retrieval
from docjax.tasks.sentence_similarity import SentenceSimilarity
from docjax.tasks.task import TaskDefaults
from docjax.tasks.word_attention import RATIO, WordAttention

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
    config.report.published = {
        "probe": {"DocSplit": {"accuracy": 0.6004, "macro_f1": 0.5014}},
        "shots": {"DocSplit": {"5/accuracy": 0.5579, "all/accuracy": 0.7689}},
        "repeated": {"20News": {"all": 1.28}},
    }
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
        RATIO,
        "<h3>Redundancy</h3>",
        "20News (published)",
        "<h3>A probe of the vectors</h3>",
        f"{100 * lines[-1]['eval/probe/macro_f1']:.2f}</td>",
        f"{100 * lines[-1]['eval/probe/accuracy']:.2f}</td>",
        "<td>50.14</td>",
        "<td>60.04</td>",
        "<h3>A probe of the vectors with few documents</h3>",
        f"{100 * lines[-1]['eval/few/macro_f1']:.2f}</td>",
        "<td>0.7689</td>",
        "<td>1.28</td>",
        f"{lines[-1]['eval/alike/inner']:.2f}</td>",
        f"{lines[-1]['eval/attention/verb']:.4g}",
    ):
        assert words in page, words
    assert page.count("before training</th>") >= 3
    scores = page[page.index('<section id="scores">') : page.index('id="settings"')]
    assert "repeated" not in scores and "shots" not in scores
    assert "published" not in scores


def test_figures_have_their_numbers_beside_them(run, lines):
    with (run / "figures/shots.csv").open() as file:
        rows = list(csv.DictReader(file))
    after = [row for row in rows if row["row"] == "after training"]
    assert [row["documents of a class"] for row in after] == SHOTS
    for row in after:
        name = f"eval/shots/{row['documents of a class']}/accuracy"
        assert float(row["accuracy"]) == pytest.approx(lines[-1][name])
        deviation = lines[-1].get(f"{name}_std", 0)
        assert float(row["deviation"] or 0) == pytest.approx(deviation)
    assert not any("published" in row["row"] for row in rows)
    assert (run / "figures/shots.png").exists()
    with (run / "figures/word_attention.csv").open() as file:
        kinds = {(row["row"], row["column"]) for row in csv.DictReader(file)}
    assert {("before training", "noun"), ("after training", "verb")} <= kinds
    assert not any(kind == RATIO for _, kind in kinds)  # it is no weight


def test_baselines_are_scored_with_few_shots_but_not_analysed(run):
    known = json.loads((run / "baselines.json").read_text())
    [reduced] = [row for name, row in known.items() if "dimensions" in name]
    assert set(reduced) >= {f"eval/shots/{k}/accuracy" for k in SHOTS}
    assert not any("repeated" in name for row in known.values() for name in row)


def columns(tasks, rows, given=None) -> dict[str, dict]:
    """The tables of tasks by title: column -> row -> value."""
    found = tables(tasks, rows, published(given, tasks))
    return {table.title: table.by_column() for table in found}


def test_two_tasks_of_a_kind_are_both_shown(tmp_path):
    tasks = {
        "near": WordAttention(tag=list),
        "far": WordAttention(tag=list),
        "texts": Redundancy(tag=list),
        "alike": SentenceSimilarity(),
        "others": SentenceSimilarity(most=1),
        "linear": FewShot(),  # no probe: a score alone
    }
    before, after = (
        {f"eval/{name}/noun": value for name, value in zip(("near", "far"), values)}
        for values in ((0.2, 0.1), (0.3, 0.4))
    )
    before |= {"eval/texts/all": 1.5, "eval/alike/inner": 0.7, "eval/others/inner": 0.6}
    before |= {"eval/linear/macro_f1": 0.5}
    rows = {"before training": before, "after training": after}
    found = columns(tasks, rows)
    attention = found.pop("Attention by part of speech")
    assert attention["noun"] == {
        "before training (near)": 0.2,
        "after training (near)": 0.3,
        "before training (far)": 0.1,
        "after training (far)": 0.4,
    }
    assert attention[RATIO]["after training (near)"] == pytest.approx(1.5)
    assert attention[RATIO]["after training (far)"] == pytest.approx(4)
    assert found.pop("Redundancy")["all"]["this run"] == 1.5  # one task needs no name
    similarity = found.pop("Similarity of sentences")
    assert similarity["inner"]["before training (others)"] == 0.6
    assert not found
    shown = task_report.shown(tables(tasks, rows, {}), tmp_path)
    figure = next(each.figure for each in shown if each.figure)
    drawn = figure.with_suffix(".csv").read_text()
    assert "after training (near)" in drawn and "before training (far)" in drawn


def test_links_are_scores_with_a_table_of_their_own():
    tasks = {"cited": Links("pairs.tsv")}
    rows = {"after training": {"eval/cited/accuracy": 0.61, "eval/cited/f1": 0.6}}
    found = columns(tasks, rows, {"DocSplit_long": {"accuracy": 0.5989}})
    [cells] = found.values()
    assert cells["Acc"]["after training"] == pytest.approx(61)
    assert cells["Acc"]["DocSplit_long (published)"] == pytest.approx(59.89)
    assert cells["F1"] == {"after training": 60.0}
    assert task_report.scores(tasks, rows) == rows


def test_the_gain_of_a_probe_is_that_of_training():
    values = {"before training": 0.4, "after training": 0.5, "TF-IDF": 0.6}
    rows = {
        row: {"eval/probe/accuracy": 0.7, "eval/probe/macro_f1": value}
        for row, value in values.items()
    }
    [cells] = columns({"probe": Probe()}, rows).values()
    assert cells[GAIN] == {"after training": pytest.approx(25)}
    few = FewShot(classifier=Probe())
    [cells] = columns({"probe": few}, rows).values()
    assert cells[GAIN] == {"after training": pytest.approx(25)}
    del rows["before training"]
    [cells] = columns({"probe": Probe()}, rows).values()
    assert set(cells) == {"Acc", "F1"}


def test_tasks_without_tables_of_their_own_show_what_the_config_gives():
    tasks = {"topics": Clustering(), "few": FewShot()}
    rows = {"after training": {"eval/topics/nmi": 0.5, "eval/few/accuracy": 0.6}}
    assert columns(tasks, rows) == {}
    given = {"topics": {"DECA": {"nmi": 0.592}}}
    assert columns(tasks, rows, given) == {
        "topics": {"nmi": {"after training": 0.5, "DECA (published)": 0.592}}
    }


def test_published_figures_belong_to_the_only_task_or_name_one(caplog):
    rows = {"BM25": {"map": 0.2}}
    one, two = {"a": Retrieval()}, {"a": Retrieval(), "b": Probe()}
    assert published(rows, one) == {"a": rows} == published({"a": rows}, one)
    assert published({"b": rows}, two) == {"b": rows}
    assert published(None, two) == {} and not caplog.records
    assert published(rows, two) == {}
    assert "report.published: BM25 names no task" in caplog.text
    assert published({"map": 0.2}, one) == {}
    caplog.clear()
    assert published({"a": rows, "c": rows}, two) == {"a": rows}
    assert "report.published: c names no task: give dict(TASK=" in caplog.text


def test_scores_are_what_a_task_says():
    """And metrics that a run had of other tasks before."""
    tasks = {
        "a": Redundancy(),
        "ab": Clustering(),
        "search": Retrieval(),
        "shots": ShotsCurve(),
        "few": FewShot(),
    }
    shown = {"ab/nmi": 0.5, "few/accuracy": 0.6, "old/f1": 0.7}
    shown |= {"search/fused/ndcg@10": 0.4, "search/bm25/ndcg@10": 0.3}
    apart = {"a/all": 1.5, "shots/5/accuracy": 0.6, "search/fused/weight": 0.4}
    apart |= {"few/accuracy_std": 0.1}
    apart |= {"search/fused/map": 0.8, "search/fused/ndcg@10_gain": 0.1}
    prefixed = lambda values: {f"eval/{name}": value for name, value in values.items()}
    rows = {"after": prefixed(shown | apart)}
    assert task_report.scores(tasks, rows) == {"after": prefixed(shown)}


def test_curves_are_those_of_the_tasks():
    tasks = {"topics": Clustering(), "shots": ShotsCurve(), "search": Retrieval()}
    names = ("topics/nmi", "topics/purity", "search/dense/ndcg@10")
    expected = [f"{part}/{name}" for name in names for part in ("validation", "eval")]
    assert task_report.curves(tasks) == expected


def test_pairs_have_two_scores_and_a_table_of_their_own():
    tasks = {"pairs": Matching(), "clustering": Clustering()}
    names = [
        f"{m}{at}"
        for m in ("precision", "recall", "f1", "accuracy")
        for at in ("", "@0.25", "@0.5", "@0.75")
    ]
    metrics = {f"eval/pairs/{name}": i / 100 for i, name in enumerate(names)}
    metrics |= {"eval/pairs/threshold": 0.375, "eval/clustering/nmi": 0.5}
    rows = {"after training": metrics}
    assert set(task_report.scores(tasks, rows)["after training"]) == {
        *("eval/pairs/f1", "eval/pairs/accuracy", "eval/clustering/nmi")
    }
    given = {"pairs": {"CoLDE": {"f1": 0.7344}}}
    found = columns(tasks, rows, given)["Pairs of documents"]
    row = "after training, above 0.38 (chosen)"
    assert {column: cells[row] for column, cells in found.items()} == {
        "P": 0.0,
        "R": 0.04,
        "F1": 0.08,
        "Acc": 0.12,
    }
    assert found["Acc"]["after training, above 0.75"] == 0.15
    assert found["F1"]["CoLDE (published)"] == 0.7344
    assert len(found["P"]) == 4
    metrics |= {"eval/uniform/accuracy@0.75": 0.5, "eval/uniform/threshold": 0.1}
    two = columns(tasks | {"uniform": Matching()}, rows)["Pairs of documents"]
    assert two["Acc"]["after training, above 0.75 (pairs)"] == 0.15
    assert two["Acc"]["after training, above 0.75 (uniform)"] == 0.5
    assert columns({"clustering": Clustering()}, rows) == {}


def test_a_run_of_an_older_docjax_shows_what_it_has():
    old = dict(f1=0.5, accuracy=0.25, threshold=0.3)
    rows = {"after training": {f"eval/pairs/{name}": old[name] for name in old}}
    row = "after training, above 0.30 (chosen)"
    assert columns({"pairs": Matching()}, rows) == {
        "Pairs of documents": {"F1": {row: 0.5}, "Acc": {row: 0.25}}
    }


def test_a_baseline_is_scored_by_its_vectors_in_one_order_alone():
    texts = (Redundancy(), SentenceSimilarity(), WordAttention())
    orders = [Matching(shuffled=each) for each in ("sections", "segments")]
    assert not any(task.on_baselines for task in (*texts, *orders))
    assert Matching().on_baselines and Probe().on_baselines
    assert TaskDefaults.on_baselines
