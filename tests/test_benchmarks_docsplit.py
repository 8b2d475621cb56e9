"""DocSplit's comparison: what its rows train, and how its tables count."""

import functools
import json
import lzma

import numpy as np
import pytest

from benchmarks import docsplit
from docjax.run import fields
from docjax.tasks.classification import Linear
from docjax.tasks.embeddings import LabelledVectors
from docjax.tasks.few_shot import ShotsCurve
from docjax.types import Embeddings

CORPORA = ["20news", "r8"]


@pytest.fixture
def flags(tmp_path):
    given = f"--data {tmp_path} --workdir {tmp_path / 'w'} --seeds 0 1 --tokens 128"
    return docsplit.arguments(
        [*given.split(), "--set", "batch=8", "--corpora", *CORPORA]
    )


def test_flags_name_rows_and_fields(flags):
    assert flags.set == [("batch", 8)] and flags.corpora == CORPORA
    assert set(flags.methods) == set(docsplit.METHODS)
    with pytest.raises(SystemExit):
        docsplit.arguments(["--data", "d", "--workdir", "w", "--methods", "bert"])


@pytest.mark.parametrize("name", docsplit.METHODS)
def test_every_row_goes_on_from_the_start_for_as_long(name, flags, monkeypatch):
    asked = []
    run = lambda config, folder: asked.append((fields.resolve(config), folder))
    monkeypatch.setattr(docsplit.runs, "trained", run)
    docsplit.method("r8", name, 1, flags)
    (start, at), (config, folder) = asked
    assert config.init == str(at) and config.seed == 1 and start.init is None
    assert (start.epochs, config.epochs) == (10, 2) and not config.tasks
    assert config.limits.inference_segments == 1 and config.batch == 8
    assert config.limits.training_tokens == 128
    assert folder == flags.workdir / "r8" / f"{name}-2-1"
    masked = "masked_lm" in config.objective.fn
    assert masked == (name in ("masked_words", "simcse_long", "docsplit"))


def test_a_checkpoint_learns_masked_words_by_the_papers_rate(flags, monkeypatch):
    asked = []
    run = lambda config, *_: asked.append(config)
    monkeypatch.setattr(docsplit.runs, "trained", run)
    flags.checkpoint, flags.rate = "folder", 5e-5
    docsplit.method("r8", "docsplit", 1, flags)
    start, config = asked
    assert start.init == "folder" and config.init.endswith("masked_lm")
    assert start.optimizer.learning_rate == config.optimizer.learning_rate == 5e-5
    assert start.encoder.segment.pooling == config.encoder.segment.pooling  # or refused


def test_the_smallest_class_of_a_corpus_sets_the_longest_draw(tmp_path, monkeypatch):
    quick = functools.partial(ShotsCurve, repeats=1, few=Linear(), full=Linear())
    monkeypatch.setattr(docsplit, "ShotsCurve", quick)
    vectors = np.random.default_rng(0).normal(size=(106, 4)).astype(np.float32)
    labels = ["acq"] * 65 + ["grain"] * 41  # as R8's smallest class
    data = LabelledVectors(
        dict.fromkeys(["train", "test"], Embeddings(vectors, labels))
    )
    found = {"tfidf": docsplit.scores(tmp_path, lambda: data, "r8", [0])}
    for measure, name in docsplit.MEASURES.items():
        lines = docsplit.table("r8", found, measure).splitlines()
        assert lines[0] == f"| r8, {name} | 5 | 10 | 20 | all |"


def rows(corpus: str) -> docsplit.Rows:
    """The rows in the papers' order, but SimCSE with whole documents the worst."""
    means = {"tfidf": 0.7, "masked_lm": 0.2, "contrastive_tension": 0.3}
    means |= {"simcse": 0.4, "simcse_long": 0.1, "docsplit": 0.5}
    return {
        name: [
            {
                f"{shots}/{measure}": mean + more + 0.01 * seed
                for shots, more in (("5", 0.0), ("all", 0.1))
                for measure in docsplit.MEASURES
            }
            for seed in (0, 2)
        ]
        for name, mean in means.items()
    }


def test_tables_have_means_and_paired_gains():
    lines = docsplit.table("r8", rows("r8"), "macro_f1").splitlines()
    assert lines[0] == "| r8, macro-F1 | 5 | all |"
    simcse = next(line for line in lines if line.startswith("| simcse, 2 seeds"))
    assert "| 41.0 +- 1.0 (+10.0, +10.0 to +10.0) |" in simcse
    assert "| docsplit, 2 seeds | 51.0 +- 1.0 | 61.0 +- 1.0 |" in lines


def test_averages_are_improvements_and_an_order():
    found = docsplit.averages({corpus: rows(corpus) for corpus in CORPORA})
    assert "| simcse | 41.0 (+24.4 %) | 51.0 (+19.6 %) |" in found
    assert "| docsplit | 51.0 | 61.0 |" in found
    wrong = "simcse_long < masked_lm < contrastive_tension < simcse < docsplit: the pap"
    assert found.count(wrong) == 2
    right = {corpus: rows(corpus) for corpus in CORPORA}
    for of_corpus in right.values():
        del of_corpus["simcse_long"]
    assert docsplit.averages(right).count("< simcse < docsplit: confirmed") == 2


def test_settings_are_chosen_on_training_documents_alone(flags, tmp_path):
    news = [{"id": i, "split": "test" if i % 3 else "train"} for i in range(60)]
    with lzma.open(tmp_path / "20news.jsonl.xz", "wt") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in news)
    lines = docsplit.source(docsplit.CHOOSE, flags).read_text().splitlines()
    chosen = [json.loads(line) for line in lines]
    assert [line["id"] for line in chosen] == list(range(0, 60, 3))
    assert [i for i, line in enumerate(chosen) if line["split"] == "test"] == [9, 19]
