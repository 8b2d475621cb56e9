"""Shipped recipes on a few documents: planned, trained, exported and loaded."""

import importlib
import json
import random
from pathlib import Path

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

import docjax
from docjax import config as config_lib
from docjax import main
from docjax.encoders.longformer import Longformer
from docjax.export import parity
from docjax.export.write import export
from docjax.recipe.share import with_this_share
from docjax.run import frozen
from docjax.run.prepare import prepare
from docjax.training import loop, memory, plan, sharding

pytestmark = pytest.mark.usefixtures("one_device")

WORDS = "graph node passage vector batch token the of and loss seed view".split()
NAMES = [
    name
    for name in config_lib.shipped()
    if "smoke" in importlib.import_module(f"configs.{name}").VARIANTS
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """40 documents of five sentences, with everything that a recipe may ask for."""
    chance, path = random.Random(0), tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    sentence = lambda: " ".join(chance.choices(WORDS, k=8)).capitalize()
    documents = [
        {
            "id": f"d{number}",
            "text": ". ".join(sentence() for _ in range(5)) + ".",
            "label": "ab"[number % 2],
            "split": "test" if number % 5 == 4 else "train",
            "links": [f"d{(number + 2) % 40}"],
            "query": WORDS[number % 9],
        }
        for number in range(40)
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in documents))
    return path


def smoke(name: str, corpus: Path) -> ConfigDict:
    asked = config_lib.load(name, variant="smoke")
    asked.source = {"fn": "docjax.data.sources.jsonl.jsonl", "path": str(corpus)}
    asked.batch = 8
    if "words" in asked.units:
        asked.units.words = 10
    return asked


def trained(asked: ConfigDict, run: Path) -> dict:
    """The last metrics of a run, without its report."""
    prepared, mesh = prepare(asked, run), sharding.mesh()
    loop.train(prepared, main._trainer(prepared, mesh), mesh, lambda *_: {})
    return json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """Spares a compilation: whether a step fits into memory is tested elsewhere."""
    monkeypatch.setattr(memory, "check", lambda *_: None)


@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_is_planned_on_a_few_documents(name, corpus, tmp_path):
    """Without compiling: the parts fit the documents, and batches are made of them."""
    prepared = with_this_share(prepare(smoke(name, corpus), tmp_path))
    prepared, mesh = frozen.with_stand_ins(prepared), sharding.mesh()
    counts = plan._counts(main._trainer(prepared, mesh))
    assert counts["steps"] == counts["counted_over_steps"] > 0
    assert counts["documents_a_step"] >= 8 and counts["tokens_a_step"] > 8
    assert 0 <= counts["padding"] < 1


def tiny(name: str, corpus: Path, steps: int, **sizes) -> ConfigDict:
    """A recipe whose micro-batches have one shape, so that little is compiled."""
    asked = smoke(name, corpus)
    sizes |= dict(layers=1, width=16, heads=2, hidden=16)
    asked.encoder.segment.update(sizes)
    asked.limits.segment_tokens = asked.limits.query_tokens = 8
    asked.tokenizer.train.vocabulary = 270
    asked.update(steps=steps, log_every=steps, checkpoint_every=steps, tasks={})
    return asked


def test_contriever_trains_with_its_momentum_encoder_and_its_queue(corpus, tmp_path):
    line = trained(tiny("contriever", corpus, steps=2), tmp_path)
    assert line["step"] == 2 and np.isfinite(line["train/loss"])
    assert line["train/negatives"] == 8  # those of the first batch
    vectors = docjax.load(tmp_path).encode(["a graph of nodes", "the loss of a batch"])
    assert vectors.shape == (2, 16) and np.abs(vectors[0] - vectors[1]).max() > 1e-3


def test_a_longformer_is_trained_exported_and_loaded(corpus, tmp_path, monkeypatch):
    """`tests/export` compares exports with what other libraries make of them."""
    asked = tiny("docsplit", corpus, steps=1)
    asked.encoder.segment.fn = "docjax.encoders.longformer.Longformer"
    asked.encoder.segment.update(positions=34, position_offset=2, window=(4,))
    asked.encoder.segment.masked_lm = False
    asked.objective = asked.objective.contrastive
    line = trained(asked, tmp_path / "run")
    assert line["step"] == 1 and np.isfinite(line["train/loss"])
    monkeypatch.setattr(parity, "differences", lambda *_: {})
    monkeypatch.setattr(parity, "check_installed", lambda: None)  # imports torch
    again = docjax.load(export(tmp_path / "run", tmp_path / "out"))
    segment = again.encoder.segment
    assert isinstance(segment, Longformer) and segment.window == (4,)
    model, texts = docjax.load(tmp_path / "run"), ["the loss of a batch " * 9]
    np.testing.assert_array_equal(again.encode(texts), model.encode(texts))
    jax.tree.map(
        np.testing.assert_array_equal,
        again.params["segment"],
        model.params["segment"],
    )
