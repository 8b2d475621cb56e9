"""What training by vectors and tokens refuses before its first step."""

import functools
import itertools
import json
import logging
import shutil
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

import docjax
from configs import graph_roberta
from docjax import main
from docjax.data.examples import Examples
from docjax.data.pairs import Pair, write_pairs
from docjax.data.sources.jsonl import jsonl
from docjax.errors import UserError
from docjax.export import write
from docjax.objectives.facts import check_examples
from docjax.objectives.supervised_contrastive import supervised_contrastive
from docjax.run.parameters import initial_params
from docjax.run.prepare import prepare
from docjax.run.prepared import Prepared
from docjax.storage.checkpoint import restore_params
from docjax.training import sharding, vector_trainer
from docjax.training.vector_trainer import (
    VectorTrainer,
    _shapes,
    training_batches,
)
from docjax.types import DOCUMENT

pytestmark = pytest.mark.usefixtures("one_device")


@pytest.fixture
def masked(tmp_path):
    """Prepares a run with masked language modelling after changes of its config."""
    path = tmp_path / "corpus.jsonl"
    rows = [{"id": str(i), "text": "A river floods the valley. " * 9} for i in range(8)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def make(**changes) -> Prepared:
        config = graph_roberta.get_config("smoke")
        config.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(path))
        config.tokenizer.train.vocabulary = 270
        config.units.words = 10
        config.batch = config.microbatch = 4
        config.tasks = {}
        config.objective = dict(
            fn="docjax.objectives.masked_lm.MaskedLM",
            contrastive=config.objective.to_dict(),
        )
        with config.encoder.segment.unlocked():
            config.encoder.segment.masked_lm = True
        config.update_from_flattened_dict(changes)
        return prepare(config, tmp_path / "run")

    return make


def trainer(prepared: Prepared) -> VectorTrainer:
    objective = prepared.config.objective.built
    return VectorTrainer(prepared, objective, sharding.mesh())


def test_tokens_are_masked_and_predicted(masked):
    made = trainer(masked())
    batch, _ = made.dataset[0]
    assert batch.masked and float(batch.answers) > 0


def test_a_segment_encoder_that_cannot_predict_is_refused(masked):
    with pytest.raises(UserError, match="set --config.encoder.segment.masked_lm to Tr"):
        masked(**{"encoder.segment.masked_lm": False})


def test_a_segment_encoder_that_is_not_trained_is_refused(masked):
    """The token loss would be left out of the gradient, silently."""
    with pytest.raises(UserError, match="encoder.frozen 'segment/' freezes it: leave"):
        masked(**{"encoder.frozen": "segment/"})


def test_a_tokenizer_without_mask_token_is_refused(masked, minilm, tmp_path):
    node = json.loads((minilm / "tokenizer.json").read_text())
    del node["model"]["vocab"]["[MASK]"]
    node["added_tokens"] = [
        token for token in node["added_tokens"] if token["content"] != "[MASK]"
    ]
    (tmp_path / "tokenizer.json").write_text(json.dumps(node))
    changes = {"tokenizer.path": str(tmp_path), "encoder.segment.vocabulary": 30522}
    with pytest.raises(UserError, match=r"has none of \[MASK\], <mask>; train another"):
        trainer(masked(**changes))


@pytest.mark.parametrize(
    ("by", "labels", "said"),
    [
        ("label", "aaaaaaaa", "all 6 training documents have the same label"),
        ("label", "abcdefgh", "no two of 8 training documents have the same label"),
        ("document", "aabbccdd", "no two of 8 training documents are related"),
    ],
)
def test_a_loss_that_would_compare_nothing_is_refused(by, labels, said, tmp_path):
    rows = [
        {"id": str(i), "text": "A river floods the valley. " * 9, "label": label}
        for i, label in enumerate(labels)
    ]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = docjax.config.load("colde", variant="smoke,no_sections")
    config.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(path))
    config.examples.related = None
    config.tokenizer.train.vocabulary = 270
    config.batch = config.microbatch = 4
    config.objective.by, config.tasks = by, {}
    with pytest.raises(UserError, match=said):
        trainer(prepare(config, tmp_path / "run"))


def test_different_labels_are_refused_with_several_views_too():
    examples = Examples((DOCUMENT,), np.zeros((4, 1), int), np.array([-1, 0, 1, 2]))
    objective = functools.partial(supervised_contrastive, by="label")
    with pytest.raises(
        UserError, match="no two of 4 .* --config.objective.by=document"
    ):
        check_examples(objective, examples, 2)


@pytest.mark.parametrize(
    ("backend", "steps", "shapes"),
    [("cpu", 9, 16), ("gpu", 9, 6), ("tpu", None, 6), ("gpu", 20_000, 16)],
)
def test_a_short_run_on_a_gpu_compiles_few_widths(monkeypatch, backend, steps, shapes):
    config = SimpleNamespace(steps=steps, epochs=2, batch=4)
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    assert _shapes(config, 40) == shapes


def test_the_batches_of_a_gpu_have_few_widths(masked, monkeypatch):
    prepared = masked()
    widths = training_batches(prepared, None).layout.widths
    assert len(widths) > 2
    monkeypatch.setattr(vector_trainer, "FEW_SHAPES", 2)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert len(training_batches(prepared, None).layout.widths) == 2


def linked_documents(path, count=24):
    """Documents of two sections, with labels, splits, queries and links."""
    words = ("river flood valley water", "star orbit planet light")
    splits = ("train", "train", "validation", "test")
    rows = [
        {
            "id": str(i),
            "sections": [
                {"heading": "One", "text": f"The {words[i % 2]} {i}. " * 6},
                {"heading": "Two", "text": f"A {words[i % 2]} again. " * 6},
            ],
            "label": str(i % 2),
            "split": splits[i // 2 % 4],
            "query": f"{words[i % 2]} {i}",
            "links": [str((i + 8) % count)],
        }
        for i in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table_of(path):
    """A table of all pairs of one split; those with a link are similar."""
    pairs = {}
    for a, b in itertools.combinations(jsonl(str(path)), 2):
        if a.split == b.split:
            similar = b.id in a.links or a.id in b.links
            pairs.setdefault(a.split, []).append(Pair(a.id, b.id, similar))
    write_pairs(path.with_name("pairs.tsv"), pairs)
    return path.with_name("pairs.tsv")


@pytest.mark.parametrize(
    "name, select",
    [
        ("docsplit", "few_shot/accuracy"),
        ("contrastive_tension", "few_shot/accuracy"),
        ("masked_lm", "tokens/accuracy"),
        ("colde", "matching/f1"),
        ("siamese", "matching/f1"),
        ("retriever", "retrieval/dense/ndcg@10"),
    ],
)
def test_a_system_is_trained_resumed_selected_exported_and_loaded(
    name, select, tmp_path, no_report, monkeypatch
):
    monkeypatch.setattr(write, "LONG", 60)
    monkeypatch.setattr(write, "SAMPLE", 2)
    config = docjax.config.load(name, variant="smoke")
    path = linked_documents(tmp_path / "corpus.jsonl")
    config.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(path))
    config.tokenizer.train.vocabulary = 400
    tokens = 32 if name == "retriever" else 16  # few widths to compile
    config.limits.update(segment_tokens=tokens, query_tokens=tokens)
    config.splits.validation = "validation"
    config.batch = config.microbatch = 4
    config.keep = dict(fn="docjax.keep.Best", metric=select)
    config.update(evaluate_every=0, steps=4, checkpoint_every=2)
    task = select.partition("/")[0]
    config.tasks = {task: config.tasks[task].to_dict()}
    if task == "few_shot":
        config.tasks.few_shot.shots = 2
    if name == "contrastive_tension":
        config.objective.negatives = 3
    if name == "colde":
        config.examples.update(related="pairs", path=str(table_of(path)))
        config.tasks.matching.path = config.examples.path
    run, again = tmp_path / "run", tmp_path / "again"
    metrics = main.run(config, run, "train")
    assert f"eval/{select}" in metrics
    shutil.copytree(run, again)
    shutil.rmtree(again / "checkpoints/4")
    main.run(config, again, "train")
    model, resumed = docjax.load(run), docjax.load(again)
    jax.tree.map(np.testing.assert_array_equal, model.params, resumed.params)
    write.export_run(run)
    texts = ["The river floods the valley. " * 9]
    exported = docjax.load(run / "export").encode(texts)
    np.testing.assert_allclose(exported, model.encode(texts), atol=1e-6)


@pytest.mark.parametrize(
    "keywords, negatives",
    [
        ({}, 4 - 1 + 3 * 4),
        (dict(momentum=0.9, in_batch=False, symmetric=False), 3 * 4),
    ],
    ids=["queue", "momentum"],
)
def test_a_run_goes_on_with_what_it_remembered(
    masked, tmp_path, no_report, keywords, negatives
):
    """The last checkpoint is lost: the steps since the one before are taken again."""
    prepared = masked()
    config = ConfigDict(prepared.config.to_json())
    queue = "docjax.objectives.queue.Queue"
    config.objective = dict(fn=queue, batches=3, **keywords)
    del config.similarity  # of the objective before
    config.update(steps=4, epochs=None, checkpoint_every=2)
    run, again = tmp_path / "queue", tmp_path / "again"
    metrics = main.run(config, run, "train")
    assert metrics["train/negatives"] == negatives
    shutil.copytree(run, again)
    shutil.rmtree(again / "checkpoints/4")
    lines = (run / "metrics.jsonl").read_text().splitlines()
    main.run(config, again, "train")
    assert len((again / "metrics.jsonl").read_text().splitlines()) == len(lines)
    shapes = initial_params(prepared.config, prepared.encoder)
    trained, expected = (restore_params(folder, shapes) for folder in (again, run))
    jax.tree.map(np.testing.assert_array_equal, trained, expected)


def test_an_encoder_that_no_other_can_follow_is_refused(masked):
    prepared = masked()
    config = ConfigDict(prepared.config.to_json())
    queue = dict(fn="docjax.objectives.queue.Queue", momentum=0.9, symmetric=False)
    config.objective = queue
    del config.similarity  # of the objective before
    segment = config.encoder.segment.to_dict() | {"masked_lm": False}
    towers = dict(fn="docjax.encoders.towers.Towers", by="view", encoder=segment)
    config.encoder.segment = towers
    with pytest.raises(UserError, match="encoder.segment may have no towers"):
        trainer(prepare(config, prepared.run.parent / "towers"))


def test_documents_of_one_sentence_are_counted_and_left_out(
    tmp_path, monkeypatch, caplog
):
    """The sentence split needs two: 6 of 14 documents have one."""
    path = tmp_path / "corpus.jsonl"
    texts = ["A river floods the valley."] * 6 + ["A river. A valley. A flood."] * 8
    rows = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = docjax.config.load("docsplit", variant="smoke")
    config.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(path))
    config.tokenizer.train.vocabulary = 270
    config.batch = config.microbatch = 4
    with caplog.at_level(logging.WARNING):
        made = trainer(prepare(config, tmp_path / "run"))
    assert "6 of 14 training examples have fewer than 2 units: not used" in caplog.text
    assert {int(row) for row in made.batches.examples.rows[:, 0]} == set(range(6, 14))
    config.batch = 12  # told before anything is made
    with pytest.raises(
        UserError, match="batch 12 is larger than the 8 training exampl"
    ):
        vector_trainer.check_batch(prepare(config, tmp_path / "many"), sharding.mesh())
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:6]))
    with pytest.raises(UserError, match="no training example has documents of 2 units"):
        vector_trainer.check_batch(prepare(config, tmp_path / "none"), sharding.mesh())
