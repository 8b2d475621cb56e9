"""Every task: its name in the metrics, its defaults, and what it asks of the data."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from docjax.errors import UserError
from docjax.tasks.classification import EndToEnd, Linear
from docjax.tasks.clustering import Clustering
from docjax.tasks.embeddings import LabelledVectors, NoLabels
from docjax.tasks.few_shot import FewShot, ShotsCurve
from docjax.tasks.knn import KNearest
from docjax.tasks.matching import Matching
from docjax.tasks.probe import Probe
from docjax.tasks.redundancy import Redundancy
from docjax.tasks.retrieval import Retrieval
from docjax.tasks.runner import scores
from docjax.tasks.sentence_similarity import SentenceSimilarity
from docjax.tasks.task import TaskDefaults
from docjax.tasks.word_attention import WordAttention
from docjax.types import Embeddings, Task, TaskData

TASKS = (
    *(Clustering, Linear, EndToEnd, FewShot, Matching, Retrieval),
    *(Probe, KNearest, ShotsCurve, Redundancy, SentenceSimilarity, WordAttention),
)
VECTORS = np.repeat(np.eye(2, dtype=np.float32), 20, axis=0)
PART = Embeddings(VECTORS, ["a"] * 20 + ["b"] * 20, ["a"] * 40)


@pytest.mark.parametrize("kind", TASKS)
def test_a_task_has_what_the_runner_calls(kind, given):
    assert isinstance(kind(), Task)
    assert isinstance(given([], []), TaskData)
    assert isinstance(LabelledVectors({}), TaskData)


def test_metrics_have_the_name_of_the_part_and_of_the_task():
    data = LabelledVectors({"train": PART, "test": PART, "validation": PART})
    tasks = {"some": Clustering(restarts=1), "other": EndToEnd()}
    kinds = ("nmi", "nmi_geometric", "nmi_min", "nmi_max", "purity")
    expected = {f"some/{kind}" for kind in kinds}
    expected |= {"other/accuracy", "other/macro_f1"}
    assert set(scores(tasks, data, "test")) == {f"eval/{x}" for x in expected}
    named = scores(tasks, data, "validation")
    assert set(named) == {f"validation/{x}" for x in expected}
    assert (
        named["validation/some/nmi"] == 1 and named["validation/other/accuracy"] == 0.5
    )


def test_keywords_of_a_task_reach_its_function():
    data = LabelledVectors({"train": PART, "test": PART})
    draws = FewShot(shots=21)
    with pytest.raises(UserError, match="shots=21"):
        draws(data, "test")
    clusters = Clustering(clusters=41, restarts=1)
    with pytest.raises(UserError, match="cannot make 41 clusters"):
        clusters(data, "test")


@pytest.mark.parametrize(
    "task, train, test, error, message",
    [
        (Clustering(), "", "ab", NoLabels, "no labelled train document"),
        (Linear(), "ab", "", NoLabels, "no labelled validation document"),
        (EndToEnd(), "ab", "", NoLabels, "no labelled validation document"),
        (FewShot(), "", "ab", NoLabels, "no labelled train document"),
        (Clustering(), "ab", "aa", UserError, "all 2 validation documents"),
        (Clustering(), "aa", "ab", UserError, "all 2 train documents"),
        (
            Clustering(all_documents=True),
            "aa",
            "aa",
            UserError,
            "all 4 train and validation documents",
        ),
        (Linear(), "aa", "ab", UserError, "all 2 train documents"),
        (FewShot(shots=2), "aab", "ab", UserError, "'b' has 1 train documents"),
    ],
)
def test_labels_are_checked_before_anything_is_encoded(
    task, train, test, error, message
):
    class Labels(LabelledVectors):
        def labelled(self, part):
            raise AssertionError("encoded")

    empty = np.zeros((0, 1), np.float32)
    parts = {"train": Embeddings(empty, list(train))}
    parts["validation"] = Embeddings(empty, list(test))
    with pytest.raises(error, match=message):
        task.check(Labels(parts), "validation")


def test_labels_that_do_are_no_mistake():
    data = LabelledVectors({"train": PART, "test": PART})
    for task in (Clustering(), Linear(), EndToEnd(), FewShot(), Probe(), KNearest()):
        task.check(data, "test")
    one_class = LabelledVectors(
        {"train": PART._replace(labels=["a"] * 40), "test": PART}
    )
    Clustering(clusters=2).check(one_class, "test")
    Clustering(all_documents=True).check(one_class, "test")


@pytest.mark.parametrize("task", [Retrieval(), Matching(), SentenceSimilarity()])
def test_vectors_and_labels_alone_have_no_documents(task):
    with pytest.raises(UserError, match="only vectors and labels"):
        task.check(LabelledVectors({"test": PART, "train": PART}), "test")


TITLES = [f"title {i}" for i in range(100)]
LABELLED = Clustering(), Linear(), FewShot(shots=1), Probe(), KNearest()


def labelled(train: list[str], test: list[str]) -> LabelledVectors:
    empty = np.zeros((0, 1), np.float32)
    parts = {"train": Embeddings(empty, train), "test": Embeddings(empty, test)}
    return LabelledVectors(parts)


@pytest.mark.parametrize("task", [*LABELLED, Clustering(all_documents=True)])
def test_labels_that_documents_do_not_share_leave_a_task_out(task):
    message = "100 different labels among 100 train documents, and 1 of 3 test docu"
    with pytest.raises(NoLabels, match=message):
        task.check(labelled(TITLES, ["title 3", "x", "y"]), "test")
    with pytest.raises(NoLabels, match="102 different labels among 202 train docu"):
        task.check(labelled(TITLES + ["x", "y"] * 51, ["z", "u"]), "test")


@pytest.mark.parametrize("task", LABELLED)
def test_a_document_of_each_class_is_enough_to_learn_from(task):
    task.check(labelled(TITLES, ["title 3", "title 4", "x", "y"]), "test")
    task.check(labelled(TITLES[:99], ["x", "y"]), "test")
    task.check(labelled(TITLES + ["x", "y"] * 52, ["z", "u"]), "test")


@dataclasses.dataclass(frozen=True)
class Returns(TaskDefaults):
    returned: Any

    def check(self, data, part): ...

    def __call__(self, data, part):
        return self.returned


@pytest.mark.parametrize(
    "returned, text",
    [
        ({"side": "left"}, "its metric 'side' is 'left', not a number"),
        ({"sides": np.ones(2)}, "its metric 'sides' is array([1., 1.]), not a number"),
        ({"side": None}, "its metric 'side' is None, not a number"),
        (0.5, "task mine returns 0.5: return a dict of metrics"),
    ],
)
def test_a_task_that_returns_no_numbers_is_named(given, returned, text):
    with pytest.raises(UserError) as error:
        scores({"mine": Returns(returned)}, given([], []), "test")
    assert str(error.value).startswith("task mine") and text in str(error.value)
