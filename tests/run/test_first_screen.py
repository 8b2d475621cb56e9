"""The first screen of a report, from scores and vectors to its sentences and cells."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from docjax.run.first_screen import first_screen
from docjax.tasks.classification import Linear
from docjax.tasks.clustering import Clustering
from docjax.tasks.embeddings import LabelledVectors
from docjax.tasks.knn import KNearest
from docjax.tasks.redundancy import Redundancy
from docjax.tasks.runner import scores
from docjax.types import AFTER, Embeddings

TASKS = {"labels": Linear(), "near": KNearest(), "clusters": Clustering()}
COUNT = 600
WORDS = "TF-IDF, all words"


def data(away: float) -> LabelledVectors:
    """Documents of three labels, whose vectors lie `away` from each other."""
    generator = np.random.default_rng(0)
    parts = {}
    for part, count in (("train", 90), ("test", COUNT)):
        numbers = np.arange(count) % 3
        vectors = away * np.eye(3)[numbers] + generator.normal(size=(count, 3))
        parts[part] = Embeddings(vectors.astype("f4"), list(map(str, numbers)))
    return LabelledVectors(parts)


def shown(folder, tasks=TASKS, rows=None, **judged):
    """The first screen of a run that keeps what `judged` says."""
    if judged:
        (folder / "judgement.json").write_text(json.dumps(judged))
    vectors = {AFTER: data(4.0), WORDS: data(1.0)} if rows is None else rows
    prepared = SimpleNamespace(
        run=folder,
        tasks=tasks,
        config=SimpleNamespace(init=None),
        scored=lambda part: np.arange(COUNT),
        corpus=SimpleNamespace(labels=[str(i % 3) for i in range(COUNT)]),
    )
    values = {
        name: scores(tasks, each, "test") if tasks is TASKS else {"eval/a/b": 1.0}
        for name, each in vectors.items()
    }
    readers = {name: lambda each=each: each for name, each in vectors.items()}
    return first_screen(prepared, values, readers)


def test_it_says_what_was_tried_who_wins_and_what_to_do(tmp_path):
    found = shown(tmp_path, keeps="trained", helps=True, reason="training helped")
    assert found.finding.startswith(
        "On 600 test documents with 3 labels, the trained model wins. By more than noise:"
    )
    assert found.advice == "Take this model."
    assert found.finding.count("TF-IDF word counts") == 1  # explained at first use
    assert (
        found.judged == "The run keeps what it trained: that was better than its start"
    )
    assert found.reason == "training helped"


def test_scores_of_one_name_have_that_of_their_task_and_the_best_is_marked(tmp_path):
    found = shown(tmp_path)
    names = ["accuracy (labels)", "accuracy (near)", "cluster match (NMI)"]
    assert list(found.rows) == ["trained model", "TF-IDF"]
    assert list(found.rows["trained model"]) == names
    assert all(cell.is_best for cell in found.rows["trained model"].values())
    assert not any(cell.is_best for cell in found.rows["TF-IDF"].values())
    cell = found.rows["TF-IDF"]["accuracy (labels)"]
    mean = scores(TASKS, data(1.0), "test")["eval/labels/accuracy"]
    assert cell.score == f"{mean:.3f}"[1:]
    low, high = map(float, cell.interval.split("–"))
    assert low < mean < high
    assert [text.partition(":")[0] for text in found.meanings] == names
    assert not found.judged and not found.reason


@pytest.mark.parametrize(
    ("keeps", "helps", "words", "name"),
    [
        ("start", False, "nothing showed that training helps", "run's start"),
        ("words", True, "without the steps", "run's word vectors"),
        ("words", False, "nothing showed that the steps help", "run's word vectors"),
        ("mean", True, "without attention between sections", "trained model"),
    ],
)
def test_what_a_run_keeps_is_said_in_a_sentence(tmp_path, keeps, helps, words, name):
    found = shown(tmp_path, keeps=keeps, helps=helps, reason="a reason")
    assert words in found.judged and found.reason == "a reason"
    assert next(iter(found.rows)) == name
    assert ("Training did not help" in found.advice) == (keeps == "start")


def test_without_scores_labels_are_asked_for(tmp_path):
    found = shown(tmp_path, rows={})
    assert "nothing tells which vectors win" in found.finding
    assert "give a few hundred documents a" in found.advice
    assert not found.rows


def test_tasks_that_tell_nothing_of_noise_are_not_judged(tmp_path):
    found = shown(tmp_path, tasks={"a": Redundancy(tag=list)})
    assert "its tasks do not tell what of a difference is noise" in found.finding
    assert not found.rows and not found.advice
