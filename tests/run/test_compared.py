"""Systems of the report's first table: their outcomes, kept and not computed again."""

import json

import numpy as np
import pytest

from docjax.run import compared
from docjax.run.compared import encoder_name
from docjax.tasks.classification import Linear
from docjax.tasks.clustering import Clustering
from docjax.tasks.embeddings import LabelledVectors
from docjax.tasks.few_shot import FewShot
from docjax.tasks.knn import KNearest
from docjax.tasks.runner import scores
from docjax.types import AFTER, Embeddings

TASKS = {
    "clusters": Clustering(),
    "labels": Linear(),
    "few": FewShot(shots=3, repeats=4),
    "near": KNearest(),
}


def data(away: float) -> LabelledVectors:
    """Documents of three labels, whose vectors lie `away` from each other."""
    generator = np.random.default_rng(0)
    parts = {}
    for part, count in (("train", 60), ("test", 45)):
        numbers = np.arange(count) % 3
        vectors = away * np.eye(3)[numbers] + generator.normal(size=(count, 3))
        parts[part] = Embeddings(vectors.astype("f4"), list(map(str, numbers)))
    return LabelledVectors(parts)


@pytest.mark.parametrize("name", TASKS)
def test_the_mean_of_an_outcome_is_the_score(name):
    found, task = data(1.5), TASKS[name]
    for metric, outcome in task.outcomes(found, "test").items():
        known = scores({name: task}, found, "test")[f"eval/{name}/{metric}"]
        if outcome.of_documents:
            assert len(outcome.values) == 45
            assert np.mean(outcome.values) == pytest.approx(known)
        else:
            assert len(outcome.values) == 5 and outcome.values[0] == known


def of_run(folder, read, **others):
    """The systems of a run of MiniLM, from rows of baselines by name."""
    rows = {AFTER: lambda: read(2.0)} | {
        name: lambda away=away: read(away) for name, away in others.items()
    }
    values = {name: scores(TASKS, data(1.0), "test") for name in rows}
    encoder = encoder_name("sentence-transformers/all-MiniLM-L6-v2@c9745ed1")
    names = "the trained model", encoder
    return compared.of_run(folder / "outcomes.json", TASKS, values, rows, names)


def test_systems_have_names_that_people_use(tmp_path):
    others = {
        "init, cut at 256 tokens": 1.0,
        "init, all words": 1.0,
        "LSA beside init": 1.5,
        "TF-IDF, all words": 0.5,
        "TF-IDF, 256 dimensions": 0.5,
    }
    found = of_run(tmp_path, data, **others)
    assert [each.name for each in found] == [
        "the trained model",
        "all-MiniLM-L6-v2",
        "all-MiniLM-L6-v2 beside LSA",
        "TF-IDF",
    ]
    first = next(iter(found[0].outcomes.values()))
    assert first.of_documents  # columns of documents come before those of seeds
    assert "cut at 256 tokens" in found[1].note and "256 numbers" in found[3].note


def test_a_report_that_is_written_again_computes_nothing_again(tmp_path):
    others = {"init, all words": 1.0, "TF-IDF, all words": 0.5}
    first = of_run(tmp_path, data, **others)
    assert json.loads((tmp_path / "outcomes.json").read_text()).keys() >= {AFTER}

    def refuse(away: float):
        raise AssertionError("data were read again")

    assert of_run(tmp_path, refuse, **others) == first


def test_words_that_a_task_cannot_read_are_reduced(tmp_path):
    import scipy.sparse

    def sparse(away: float):
        whole = data(away)
        parts = {
            name: part._replace(vectors=scipy.sparse.csr_matrix(part.vectors))
            for name, part in whole.parts.items()
        }
        return LabelledVectors(parts)

    rows = {
        AFTER: lambda: data(2.0),
        "TF-IDF, all words": lambda: sparse(1.0),
        "TF-IDF, 256 dimensions": lambda: data(1.0),
    }
    values = {name: scores(TASKS, data(1.0), "test") for name in rows}
    path, names = tmp_path / "outcomes.json", ("the trained model", "")
    found = compared.of_run(path, TASKS, values, rows, names)
    assert found[-1].name == "TF-IDF"
    assert set(found[-1].outcomes) == set(found[0].outcomes)
