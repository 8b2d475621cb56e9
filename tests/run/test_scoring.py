"""The tasks of a run on its own documents: what they read, and what is told."""

import dataclasses
import itertools
import json

import jax
import numpy as np
import pytest

from configs import graph_roberta
from docjax import main
from docjax.errors import UserError
from docjax.model import inference
from docjax.model.task_data import FileData
from docjax.run import prepared as prepared_lib
from docjax.run import report
from docjax.run.parameters import initial_params
from docjax.run.prepare import prepare
from docjax.run.scoring import Scoring
from docjax.training import loop, sharding
from docjax.training.vector_trainer import VectorTrainer
from docjax.types import TaskData

pytestmark = pytest.mark.usefixtures("one_device")

WORDS = "graph node passage vector batch token the of and loss seed view".split()
SPLITS = ("train", "train", "validation", "test")
TASKS = {
    "retrieval": dict(fn="docjax.tasks.retrieval.Retrieval"),
    "matching": dict(fn="docjax.tasks.matching.Matching"),
    "clustering": dict(fn="docjax.tasks.clustering.Clustering"),
    "few_shot": dict(fn="docjax.tasks.few_shot.FewShot", shots=2, repeats=2),
}


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    """32 documents of two labels; neighbours of the same split are linked."""
    generator = np.random.default_rng(0)
    return [
        {
            "id": f"d{i}",
            "text": ". ".join(
                " ".join(generator.choice(WORDS[i % 2 :: 2], 9)) for _ in range(3)
            ),
            "label": "ab"[i % 2],
            "split": SPLITS[i // 2 % 4],
            "query": " ".join(generator.choice(WORDS[i % 2 :: 2], 3)),
            "links": [f"d{i - 8}"],
        }
        for i in range(32)
    ]


@pytest.fixture(scope="module")
def config(rows, tmp_path_factory):
    """Makes a config with some tasks, on the documents after a change."""

    def make(*names: str, change=lambda row: row, **fields):
        path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
        path.write_text("".join(json.dumps(change(row)) + "\n" for row in rows))
        found = graph_roberta.get_config("smoke")
        found.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(path))
        found.tokenizer.train.vocabulary = 270
        found.units.words = 10
        found.splits.validation = "validation"
        found.tasks = {name: TASKS[name] for name in names or TASKS}
        rest = dict(batch=8, steps=3, evaluate_every=1, checkpoint_every=3)
        found.update(rest | fields)
        return found

    return make


@pytest.fixture(scope="module")
def scoring(config, tmp_path_factory):
    """Makes the scoring of such a config, and first parameters."""

    def make(*names, **keywords):
        folder = tmp_path_factory.mktemp("runs")
        prepared = prepare(config(*names, **keywords), folder / "run")
        mesh = jax.sharding.Mesh(jax.local_devices(), ("data",))
        return Scoring(prepared, mesh), initial_params(
            prepared.config, prepared.encoder
        )

    return make


@pytest.fixture(scope="module")
def plain(scoring):
    return scoring()


def test_tasks_of_all_kinds_are_scored_on_a_part_of_the_run(plain):
    run, params = plain
    for part, prefix in (("test", "eval"), ("validation", "validation")):
        found = run(params, part)
        kinds = {name.split("/")[1] for name in found}
        assert kinds == set(TASKS) and all(x.startswith(f"{prefix}/") for x in found)
        assert f"{prefix}/retrieval/dense/ndcg@10" in found
        assert f"{prefix}/matching/f1" in found and len(found) == 45 + 10 + 6 + 2 + 4


def test_every_document_is_encoded_once_for_all_tasks(plain, monkeypatch):
    run, params = plain
    counts = []
    whole = inference.Inference.encode

    def counted(self, params, documents, total=None):
        given = list(documents)
        counts.append(len(given))
        return whole(self, params, given)

    monkeypatch.setattr(inference.Inference, "encode", counted)
    assert run(params)
    assert sum(counts) == 16 + 8 + 8  # train, validation (for a threshold) and test


def test_analyses_of_one_sample_read_the_source_once(plain, monkeypatch):
    run, params = plain
    data, reads = run.data(params), []
    source = data.source
    counted = dataclasses.replace(data, source=lambda: reads.append(1) or source())
    first = counted.sample("test", 3, seed=0)
    after = len(reads)
    assert counted.sample("test", 3, seed=0) == first and len(first) == 3
    assert len(reads) == after
    others = [counted.sample("test", 3, seed=1), counted.sample("train", 3, seed=0)]
    assert first not in others and len(reads) > after
    fresh = run.data(params).sample("test", 3, seed=0)
    assert fresh == first  # by another evaluation too


def test_masked_tokens_are_those_of_the_texts_which_are_not_read(plain):
    run, params = plain
    data = run.data(params)
    expected = list(FileData.segments(data, "test"))
    data = dataclasses.replace(data, source=lambda: pytest.fail("texts are read"))
    for ours, theirs in zip(data.segments("test"), expected, strict=True):
        np.testing.assert_array_equal(ours.tokens, theirs.tokens)
        np.testing.assert_array_equal(ours.offsets, theirs.offsets)
    assert len(expected) == 8


def test_vectors_and_queries_are_those_of_the_model(plain, rows):
    run, params = plain
    data, model = run.data(params), run.prepared.model(params)
    assert isinstance(data, TaskData) and data.similarity == "cosine"
    texts = [
        rows[7]["query"],
        " ".join(WORDS * 30),
    ]  # the second is a document's length
    expected = [model.encode_queries(texts[:1])[0], model.encode(texts[1:])[0]]
    np.testing.assert_allclose(data.queries(texts), expected, atol=1e-5)
    named = data.vectors(["d9", "d3", "d9"])
    expected = model.encode([rows[9], rows[3], rows[9]])
    np.testing.assert_allclose(named, expected, atol=1e-5)
    with pytest.raises(UserError, match="no document has the id 'x'"):
        data.vectors(["d1", "x"])
    assert data.missing({"x", "d1", "a"}) == ["a", "x"]


@pytest.fixture(scope="module")
def in_sections(scoring):
    """A run whose documents have three sections of ten passages."""

    def change(row: dict) -> dict:
        texts = row["text"].split(". ")
        words = [text.split() * 10 for text in texts]
        parts = [{"heading": "", "text": " ".join(each)} for each in words]
        return {"id": row["id"], "split": row["split"], "sections": parts}

    def make(**limits: int | None):
        limits = dict(segment_tokens=128, query_tokens=64) | limits
        known = {"training_units": None, "training_segments": None}
        return scoring("matching", change=change, limits=known | limits)

    return make


def test_shuffled_documents_are_those_written_so_before_a_limit_cuts(in_sections):
    run, params = in_sections(inference_segments=1)
    data, model = run.data(params), run.prepared.model(params)
    documents = {each.id: each for each in data.source()}
    whole = run.prepared.corpus[9]
    assert len(np.unique(whole.sections)) == 3 and len(whole) > 3
    files = FileData(model, data.source)
    found = [each.shuffled(["d9", "d3", "d9"], "sections", 3) for each in (data, files)]
    np.testing.assert_allclose(*found, atol=1e-5)
    np.testing.assert_array_equal(found[0][0], found[0][2])
    for name, vector in zip(("d9", "d3"), found[0], strict=False):
        known = documents[name]
        written = [
            dataclasses.replace(known, sections=sections)
            for sections in itertools.permutations(known.sections)
        ]
        far = np.abs(model.encode(written) - vector).max(1)
        assert (far < 1e-5).sum() == 2  # two orders begin alike
        others = (
            data.shuffled([name], "sections", 4),
            data.shuffled([name], "sections", 5),
        )
        assert max(np.abs(vector - each).max() for each in others) > 1e-3


def test_shuffled_segments_are_others_in_a_run_and_in_files_alike(in_sections):
    run, params = in_sections(inference_segments=2)
    data, model = run.data(params), run.prepared.model(params)
    cut = dataclasses.replace(model, truncate_dim=5)
    names = ["d9", "d3"]
    found = data.shuffled(names, "segments", 3)
    assert np.abs(found - data.vectors(names)).max() > 1e-3
    of_files = FileData(cut, data.source).shuffled(names, "segments", 3)
    np.testing.assert_allclose(of_files, found[:, :5], atol=1e-5)
    with pytest.raises(UserError, match="no document has the id 'x'"):
        data.shuffled(["x"], "segments", 3)


def test_documents_that_have_no_other_order_are_one_line(plain):
    run, params = plain
    with pytest.raises(UserError, match="shuffled 'sections': .* none of 2 documents"):
        run.data(params).shuffled(["d1", "d3"], "sections", 0)


def test_parts_are_those_that_the_config_names(scoring):
    names = dict(train="train!", test="test!", validation=None)
    change = lambda row: row | {"split": row["split"] + "!"}
    run, params = scoring(change=change, splits=names)
    data = run.data(params)
    assert [one.split for one in data.documents("test")] == ["test!"] * 8
    assert len(data.labels("train")) == 16 and data.labels("validation") == []
    assert data.labelled("test").labels == data.labels("test") == ["a", "b"] * 4
    assert data.labelled("validation").vectors.shape == (0, 0)


def test_a_task_without_labels_is_left_out_and_the_others_stay(scoring, caplog):
    unlabelled = lambda row: row | {"label": None} if row["split"] == "test" else row
    run, params = scoring(change=unlabelled)
    with caplog.at_level("WARNING"):
        found = run(params)
    assert {name.split("/")[1] for name in found} == {"retrieval", "matching"}
    said = "task clustering is left out: there is no labelled test document"
    assert said in caplog.text
    run(params)
    assert caplog.text.count(said) == 1
    assert "validation/clustering/nmi" in run(params, "validation")


def test_of_many_labelled_documents_a_sample_is_scored(scoring, caplog, monkeypatch):
    monkeypatch.setattr(prepared_lib, "MOST_SCORED", 6)
    found, params = scoring("clustering")
    with caplog.at_level("INFO", "docjax"):
        found.check("train")
    data, corpus = found.data(params), found.prepared.corpus
    trained = {corpus.ids[row] for row in found.prepared.rows("train")}
    names = list(data.label_of["train"])
    assert len(trained) == 16 and len(names) == 6 and set(names) < trained
    assert data.labelled("train").vectors.shape[0] == 6
    assert caplog.text.count("read 6 of the 16 labelled train documents, drawn") == 1


def test_a_run_goes_on_without_a_task_whose_classes_are_too_small(scoring, caplog):
    """A class has 8 training documents."""
    few = dict(fn="docjax.tasks.few_shot.FewShot", shots=9)
    run, params = scoring("clustering", tasks=dict(few=few))
    for _ in range(2):
        assert {name.split("/")[1] for name in run(params)} == {"clustering"}
    said = "task few is left out: the class 'a' has 8 train documents, but shots=9 are"
    assert caplog.text.count(said) == 1


def test_the_report_counts_what_caps_cut(scoring):
    limits = dict(segment_tokens=128, query_tokens=64, inference_segments=1)
    limits |= dict(training_units=2, training_segments=None)
    joined = dict(fn="docjax.data.segments.Joined")
    own, _ = scoring(limits=limits)
    found = report._data(own.prepared, [])
    assert found["train"]["units cut by the cap (2)"] == 16  # of three a document
    assert found["test"]["units cut by the cap (1)"] == 2 * 8
    own, _ = scoring(limits=limits, segments=joined)
    found = report._data(own.prepared, [])
    assert found["train"]["units cut by the cap (2)"] == 16
    assert found["test"]["segments cut by the cap (1)"] == 0  # all fit into one
    own, _ = scoring(limits=limits | {"segment_tokens": 32}, segments=joined)
    lines = [{"step": 1, "data/cut": 0.25}, {"step": 2}, {"step": 3, "data/cut": 0.75}]
    found = report._data(own.prepared, lines)
    whole = report._segment_counts(own.prepared, own.prepared.rows("test"))
    assert found["test"]["segments cut by the cap (1)"] == (whole - 1).sum() > 0
    limits["training_segments"] = 1
    own, _ = scoring(limits=limits, segments=joined)
    found = report._data(own.prepared, lines)["train"]
    assert found["share of tokens cut by the cap on segments (1)"] == 0.5


@pytest.mark.parametrize(
    "task, drop, message",
    [
        ("retrieval", "query", '0 test documents have a "query"'),
        ("matching", "links", "no two test documents have a link"),
    ],
)
def test_missing_data_end_a_run_before_anything_is_encoded(
    config, tmp_path, monkeypatch, task, drop, message
):
    """Also those of the test part, though validation comes first."""
    monkeypatch.setattr(inference.Inference, "encode", None)

    def without(row):
        return row | {drop: None} if row["split"] == "test" else row

    asked = config(task, "clustering", change=without)
    with pytest.raises(UserError, match=message) as error:
        main.run(asked, tmp_path / "run", "train")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name, scored, kept, said",
    [
        ("retrieval/dense/ndcg@10", [0.1, 0.3, 0.2], "1", "keeps step 1 of 2, the"),
        ("retrieval/dense/ndcg@10", [0.3, 0.3, 0.2], "0", "keeps its start: no step"),
        ("retrieval/ndcg@10", [0.1], "", ""),
    ],
)
def test_any_metric_of_any_task_selects_the_parameters(
    config, tmp_path, name, scored, kept, said
):
    best = dict(fn="docjax.keep.Best", metric=name)
    asked = config("retrieval", keep=best, steps=2)
    prepared, mesh = prepare(asked, tmp_path), sharding.mesh()
    trainer = VectorTrainer(prepared, prepared.config.objective.built, mesh)
    score, values = Scoring(prepared, mesh), iter(scored)

    def evaluate(params, part):
        found = score(params, part)
        if part == "validation":
            found["validation/retrieval/dense/ndcg@10"] = next(values)
        return found

    if not kept:
        with pytest.raises(UserError, match=f"keep.metric '{name}' is .*dense/ndcg@10"):
            loop.train(prepared, trainer, mesh, evaluate)
        return
    loop.train(prepared, trainer, mesh, evaluate)
    assert [path.name for path in (tmp_path / "best").glob("[0-9]*")] == [kept]
    found = json.loads((tmp_path / "judgement.json").read_text())
    assert said in found["reason"]
    assert found["keeps"] == ("start" if kept == "0" else "trained")
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert f"eval/{name}" in json.loads(lines[-1])
