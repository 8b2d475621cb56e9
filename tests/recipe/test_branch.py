"""Attention between sections beside the mean: trained apart, kept if it does no harm."""

import json
import random
from pathlib import Path

import jax
import numpy as np
import pytest

import docjax
from docjax import config as configs
from docjax.errors import UserError
from docjax.model.inference import local_mesh
from docjax.model.load import load
from docjax.recipe import judgement as judging
from docjax.recipe import share as share_lib
from docjax.recipe import teacher
from docjax.run import explained, frozen
from docjax.run.parameters import start_params, trained_params
from docjax.run.prepare import prepare
from docjax.training import memory, vector_trainer
from docjax.types import Document, Section

pytestmark = pytest.mark.usefixtures("one_device")

TOPICS = {
    "space": "orbit rocket moon planet telescope launch engine crew gravity star",
    "food": "bread butter oven flour sugar salt soup pepper kitchen dinner",
}
COMMON = "the a of and to in is was for on with as by at from it this that".split()


def corpus(path: Path, documents: int, sections: int) -> Path:
    """Documents about one of TOPICS, each in `sections` sections of 40 words."""
    generator, lines = random.Random(0), []
    for number in range(documents):
        label = list(TOPICS)[number % len(TOPICS)]
        words = [TOPICS[label].split(), *[COMMON] * 3]
        parts = [
            {
                "heading": f"Part {part}",
                "text": " ".join(generator.choice(words[i % 4]) for i in range(40)),
            }
            for part in range(sections)
        ]
        lines.append({"id": str(number), "label": label, "sections": parts})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def recipe(path: Path, init: Path):
    found = configs.load("graph_roberta:frozen")
    found.source.path, found.init = str(path), str(init)
    found.steps = found.checkpoint_every = 8
    found.tasks = dict(clustering=dict(fn="docjax.tasks.clustering.Clustering"))
    found.keep.least = 100
    return found


@pytest.fixture(scope="module")
def trained(tiny, tmp_path_factory):
    """A run on documents with sections, and its config."""
    folder = tmp_path_factory.mktemp("sections")
    config = recipe(corpus(folder / "corpus.jsonl", 150, 3), tiny)
    docjax.train(config, folder / "run")
    return folder / "run", config


@pytest.fixture(scope="module")
def judged(trained):
    """The run as it is judged, its start and its parameters with a trained branch."""
    run, config = trained
    prepared = share_lib.with_share(frozen.with_vectors(prepare(config, run)), mesh())
    start = start_params(prepared.config, prepared.encoder, run)
    return prepared, start, trained_params(run, prepared.encoder)


def mesh():
    return local_mesh()


def with_branch(params, size: float):
    """The parameters with a random addition of the branch, `size` numbers large."""
    kernel = params["document"]["add"]["kernel"]
    drawn = np.random.default_rng(0).normal(0, size, kernel.shape).astype(np.float32)
    return params | {"document": params["document"] | {"add": {"kernel": drawn}}}


def test_a_run_on_sections_says_what_becomes_of_attention(trained):
    run, config = trained
    node = json.loads((run / "config.json").read_text())
    said = json.loads((run / "judgement.json").read_text())
    assert (
        node["graph"]["fn"].endswith("section")
        and node["encoder"]["document"]["branch"]
    )
    assert said["keeps"] == "trained" and "; attention stays: " in said["reason"]
    page = (run / "report/index.html").read_text("utf-8")
    assert page.count('class="explained"') == 3
    docjax.train(config, run)  # the same command goes on


def test_attention_that_harms_is_left_out_and_not_explained(
    judged, monkeypatch, tmp_path
):
    prepared, start, trained = judged
    monkeypatch.setattr(
        judging,
        "_judged",
        lambda _, mean: judging.Kept("trained", mean, "it helped", {}),
    )
    kept = judging.judge(prepared, mesh(), start, with_branch(trained, 0.0))
    assert kept.name == "trained" and "it helped; attention stays: " in kept.reason
    kept = judging.judge(prepared, mesh(), start, with_branch(trained, 9.0))
    assert kept.name == "mean" and "it helped; attention is left out: " in kept.reason
    assert {"judgement/mean", "judgement/branch", "judgement/branch_rank"} <= set(
        kept.metrics
    )
    assert not kept.params["document"]["add"]["kernel"].any()
    document = Document("a", (Section("A", "the rocket"), Section("B", "an orbit")))
    assert explained.attention(prepared, tmp_path, kept.params, [document]) == []
    with pytest.raises(UserError, match="its run left the attention out"):
        prepared.model(kept.params).explain(document)
    shown = explained.attention(
        prepared, tmp_path, with_branch(trained, 1.0), [document]
    )
    attention, mean = shown[0].weights.values()
    assert attention.shape == mean.shape == (3, 3)
    np.testing.assert_allclose(attention.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(mean[0], [0, 0.5, 0.5], rtol=0.2)


def test_a_start_that_is_kept_needs_no_branch(judged, monkeypatch):
    prepared, start, trained = judged
    kept = judging.Kept("words", start, "the words", {})
    monkeypatch.setattr(judging, "_judged", lambda *_: kept)
    assert judging.judge(prepared, mesh(), start, trained) is kept


def test_the_teacher_counts_words_in_whole_documents(judged):
    prepared, start, _ = judged
    rows = np.array([3, 8])
    found = teacher._of_start(prepared, mesh(), rows)
    share, table = prepared.encoder.document.share, start["segment"]["words"]["table"]
    assert 0 < share < 1
    for vector, row in zip(found, rows):
        tokens, counts = np.unique(prepared.corpus[row].tokens, return_counts=True)
        words = (1 + np.log(counts)) @ np.asarray(table)[tokens]
        expected = share**0.5 * words / np.linalg.norm(words)
        np.testing.assert_allclose(vector[-len(words) :], expected, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(vector), 1, rtol=1e-5)


def test_documents_without_sections_get_no_attention(tiny, tmp_path, caplog):
    config = recipe(corpus(tmp_path / "corpus.jsonl", 20, 1), tiny)
    with caplog.at_level("INFO", "docjax"):
        prepared = prepare(config, tmp_path / "run")
    assert "no attention between sections" in caplog.text
    assert prepared.graph is None and prepared.encoder.document.branch is None
    loaded = json.loads((tmp_path / "run/config.json").read_text())
    assert loaded["graph"] is None and not loaded["encoder"]["document"]["nested"]
    again = prepare(config, tmp_path / "run")  # the same command goes on
    assert again.encoder == prepared.encoder
    assert jax.tree.structure(prepared.config.to_json()) == jax.tree.structure(
        again.config.to_json()
    )


def test_a_graph_that_does_not_fit_is_refused_with_a_limit(judged, monkeypatch):
    prepared, _, _ = judged
    free = (
        2 * prepared.config.batch * 4 * 4 * 300
    )  # 3 segments of 272 numbers, no graph
    monkeypatch.setattr(memory, "available", lambda mesh: free)
    vector_trainer.check_vectors(prepared, mesh(), 8)
    monkeypatch.setattr(memory, "available", lambda mesh: free // 100)
    with pytest.raises(
        UserError, match="vectors and graphs of a batch .*training_units=1,"
    ):
        vector_trainer.check_vectors(prepared, mesh(), 8)


def test_a_loaded_run_gives_the_vectors_of_its_mean_and_its_branch(judged):
    prepared, _, params = judged
    text = {"id": "a", "sections": [{"text": "the rocket"}, {"text": "an orbit"}]}
    found = load(prepared.run).encode([text])
    np.testing.assert_array_equal(found, prepared.model(params).encode([text]))
    without = prepared.model(prepared.encoder.document.without_branch(params))
    assert np.abs(found - without.encode([text])).max() > 1e-4


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"encoder.document.branch": None, "graph": None}, "needs a branch"),
        (
            {"objective": {"fn": "docjax.objectives.queue.Queue", "batches": 2}},
            "compares views and remembers nothing",
        ),
    ],
)
def test_a_branch_that_cannot_be_left_out_is_refused(tiny, tmp_path, fields, said):
    config = recipe(corpus(tmp_path / "corpus.jsonl", 20, 2), tiny)
    for name, value in fields.items():
        config.update_from_flattened_dict({name: value})
    with pytest.raises(UserError, match=said):
        prepare(config, tmp_path / "run")
