"""A run whose segment encoder stays as it is."""

import json
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

import docjax
from configs import graph_roberta
from docjax import main
from docjax.errors import UserError
from docjax.model import inference
from docjax.run import frozen
from docjax.run.parameters import initial_params
from docjax.run.prepare import prepare
from docjax.run.prepared import Prepared
from docjax.run.scoring import Scoring

pytestmark = pytest.mark.usefixtures("one_device")

WORDS = "graph node passage vector batch token the of and loss seed view".split()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """24 documents of 2 to 5 passages."""
    generator = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    with path.open("w") as lines:
        for i in range(24):
            words = WORDS[i % 2 :: 2]
            text = ". ".join(
                " ".join(generator.choice(words, 9)) for _ in range(2 + i % 4)
            )
            split = "test" if i % 5 < 2 else "train"
            row = {"id": str(i), "text": text, "label": str(i % 2), "split": split}
            lines.write(json.dumps(row) + "\n")
    return path


def config(corpus: Path, seed: int = 0):
    found = graph_roberta.get_config("smoke")
    found.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(corpus))
    found.tokenizer.train.vocabulary = 270
    found.units.words = 10
    found.batch = 8  # of 14
    found.seed = seed
    found.encoder.frozen = "segment/"
    found.encoder.segment.normalize = True
    found.tasks = dict(clustering=dict(fn="docjax.tasks.clustering.Clustering"))
    return found


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory, no_reports) -> Path:
    run = tmp_path_factory.mktemp("runs") / "frozen"
    metrics = main.run(config(corpus), run, "train")
    assert metrics["step"] == 4 and "eval/clustering/nmi" in metrics
    return run


def test_only_the_other_parameters_change(corpus, trained, tmp_path):
    other = prepare(config(corpus), tmp_path / "other")
    before = initial_params(other.config, other.encoder)
    after = docjax.load(trained).params
    same = jax.tree.map(np.array_equal, before, after)
    assert all(jax.tree.leaves(same["segment"]))
    assert not any(jax.tree.leaves(same["document"]["layer_0"]))


def test_the_vectors_are_those_of_the_segments(corpus, trained):
    prepared = frozen.with_vectors(prepare(config(corpus), trained))
    model, rows = docjax.load(trained), prepared.corpus
    (vectors,) = rows.vectors
    assert len(vectors) == len(rows.lengths) > 24
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    for number, text in ((0, 0), (23, 23)):
        document = list(prepared.documents())[text]
        expected = model.segment_vectors([document])[0].vectors
        np.testing.assert_allclose(rows[number].vectors, expected, atol=1e-6)
    some = rows[7]
    np.testing.assert_array_equal(
        some.take(np.array([2, 0])).vectors, some.vectors[[2, 0]]
    )


def test_documents_that_are_cut_in_two_have_the_vectors_of_both_halves(
    corpus, tmp_path
):
    found = config(corpus)
    found.units = dict(fn="docjax.data.units.WholeSections")
    found.views = dict(fn="docjax.views.two_parts.TwoParts", tokens=20)
    found.limits.segment_tokens = 128
    before = prepare(found, tmp_path / "run")
    prepared = frozen.with_vectors(before)
    (row, *_), read = prepared.halved.rows.tolist(), prepared.training_corpus
    assert len(prepared.corpus[row]) == 1 and len(read[row]) == 2
    model = before.model(initial_params(before.config, before.encoder))
    halves = before.segments(before.training_corpus[row])
    (expected,) = model.inference().segments(model.params, [halves])
    np.testing.assert_allclose(read[row].vectors, expected, atol=1e-6)
    whole = prepared.corpus[row].vectors
    assert np.abs(read[row].vectors - whole).max() > 1e-3
    stand_ins = frozen.with_stand_ins(before)
    assert stand_ins.training_corpus[row].vectors.shape == read[row].vectors.shape


def test_a_text_has_the_vector_that_the_tasks_saw(corpus, trained):
    prepared = frozen.with_vectors(prepare(config(corpus), trained))
    model = docjax.load(trained)
    seen = Scoring(prepared, jax.sharding.Mesh(jax.local_devices(), ("data",)))
    np.testing.assert_allclose(
        seen.data(model.params).vectors([str(number) for number in range(24)]),
        model.encode(list(prepared.documents())),
        atol=1e-5,
    )


def test_documents_that_nothing_needs_are_read_when_they_are_asked_for(
    corpus, trained, tmp_path, monkeypatch
):
    run = shutil.copytree(trained, tmp_path / "run")
    every = frozen.with_vectors(prepare(config(corpus), run))
    assert every.corpus.rows_with_vectors.tolist() == list(range(24))
    prepared = prepare(config(corpus), run)
    vars(prepared)["in_reach"] = np.array([2, 3, 11])
    prepared.corpus.labels = [None] * 24
    assert len(frozen.with_vectors(prepared).corpus.rows_with_vectors) == 24
    monkeypatch.setattr(Prepared, "samples", True)
    some = frozen.with_vectors(prepared)
    assert some.corpus.rows_with_vectors.tolist() == [2, 3, 11]
    (vectors,) = some.corpus.vectors
    assert len(vectors) == sum(len(some.corpus[row]) for row in (2, 3, 11))
    for row in (2, 3, 11):
        expected = every.corpus[row].vectors
        np.testing.assert_allclose(some.corpus[row].vectors, expected, atol=1e-6)
    assert some.corpus[4].vectors is None
    params, mesh = docjax.load(trained).params, inference.local_mesh()
    ids = [str(number) for number in range(24)]
    found, expected = (
        Scoring(each, mesh).data(params).vectors(ids) for each in (some, every)
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_run_that_has_ended_computes_nothing_again(corpus, trained, monkeypatch):
    monkeypatch.setattr(frozen, "_write", None)
    metrics = main.run(config(corpus), trained, "evaluate")
    last = json.loads((trained / "metrics.jsonl").read_text().splitlines()[-1])
    assert {name: metrics[name] for name in last if name.startswith("eval/")} == {
        name: value for name, value in last.items() if name.startswith("eval/")
    }


def test_other_parameters_have_vectors_of_their_own(corpus, tmp_path):
    names = set()
    for seed in (0, 0, 1):
        prepared = prepare(config(corpus, seed), tmp_path / f"seed {seed}")
        frozen.with_vectors(prepared)
        names |= {path.name for path in prepared.corpus.folder.glob("vectors-*.npy")}
    assert len(names) == 2


def test_what_was_read_before_a_stop_is_not_read_again(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(inference, "WINDOW", 20)  # segments: several windows
    prepared = prepare(config(corpus), tmp_path / "run")
    read, stop_at = frozen._vectors, [2]

    def reading(*arguments):
        if not stop_at[0]:
            raise KeyboardInterrupt
        stop_at[0] -= 1
        return read(*arguments)

    monkeypatch.setattr(frozen, "_vectors", reading)
    with pytest.raises(KeyboardInterrupt):
        frozen.with_vectors(prepared)
    stop_at[0] = 100
    stopped = frozen.with_vectors(prepared).corpus
    count = len(list(inference.windows(stopped[i] for i in range(24))))
    assert count > 3 and stop_at[0] == 100 - (count - 2)
    (only,) = (path for path in stopped.folder.iterdir() if "vectors" in path.name)
    monkeypatch.setattr(inference, "WINDOW", 8192)
    only.unlink()
    at_once = frozen.with_vectors(prepared).corpus.vectors
    np.testing.assert_allclose(stopped.vectors, at_once, atol=1e-6)


def test_segments_beyond_both_caps_are_not_read(corpus, tmp_path, no_report):
    asked = config(corpus)
    asked.limits.update(training_units=2, inference_segments=3)
    prepared = frozen.with_vectors(prepare(asked, tmp_path / "run"))
    rows = prepared.corpus
    for number in range(len(rows)):
        known = np.isfinite(rows[number].vectors).all(-1)
        np.testing.assert_array_equal(known, np.arange(len(known)) < 3)
    metrics = main.run(asked, tmp_path / "run", "train")
    assert metrics["step"] == 4  # a NaN would have stopped it


@pytest.mark.parametrize("mode", ["train", "plan"])
def test_a_limit_on_tokens_does_not_fit_passages_that_are_read_whole(
    mode, corpus, tmp_path
):
    asked = config(corpus)
    asked.limits.training_tokens = 20
    with pytest.raises(UserError, match="limits.training_tokens 20 would cut a pass"):
        main.run(asked, tmp_path / "run", mode)
