"""Training of word tables: exact resuming, lambda, the contrastive update, errors."""

import dataclasses
import functools
import json
import logging
import operator
import random
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import docjax
from configs import deca
from docjax import main
from docjax.errors import UserError
from docjax.run.parameters import initial_params
from docjax.run.prepare import prepare
from docjax.run.scoring import Scoring
from docjax.storage.checkpoint import Checkpointer
from docjax.training import loop, sharding
from docjax.training.word_trainer import WordTrainer
from docjax.types import Targets

NONE = Targets(np.full(0, -1))
WORDS = [f"w{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """30 documents of two labels and 5 to 40 words, the last of words used once."""
    chance, path = random.Random(0), tmp_path_factory.mktemp("words") / "corpus.jsonl"
    lines = [
        {
            "id": f"d{i}",
            "text": " ".join(
                chance.choices(WORDS[i % 2 :: 2], k=chance.randint(5, 40))
            ),
            "label": "even" if i % 2 == 0 else "odd",
            "split": "test" if i % 5 == 4 else "train",
        }
        for i in range(29)
    ]
    lines.append({"id": "rare", "text": "once never again", "split": "train"})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def config(corpus, variant="smoke", **changes):
    found = deca.get_config(variant)
    found.source = {"fn": "docjax.data.sources.jsonl.jsonl", "path": str(corpus)}
    found.update_from_flattened_dict({"batch": 8, "tasks": {}} | changes)
    return found


def trained(run, asked):
    """The parameters that a run ends with."""
    prepared, mesh = prepare(asked, run), sharding.mesh()
    trainer = WordTrainer(prepared, prepared.config.objective.built, mesh)
    state = loop.train(prepared, trainer, mesh, Scoring(prepared, mesh))
    return jax.tree.map(np.asarray, state.params)


def same(one, other):
    return all(map(np.array_equal, jax.tree.leaves(one), jax.tree.leaves(other)))


@pytest.mark.parametrize("replicas", [1, 8])
def test_lambda_0_is_doc2vecc_to_the_bit(corpus, tmp_path, replicas):
    asked = functools.partial(config, corpus, **{"objective.replicas": replicas})
    zero, plain = asked(), asked()
    zero.objective.weight = 0.0
    plain.objective.contrastive = None
    zero = trained(tmp_path / "zero", zero)
    assert same(zero, trained(tmp_path / "plain", plain))
    assert not same(zero, trained(tmp_path / "deca", asked()))


@pytest.mark.parametrize(
    "variant, subsample, words, targets",
    [
        ("smoke", 0.0, 2.74411, 4.99632),
        ("smoke", 1e-3, 3.08563, 5.13159),
        ("smoke,simsiam", 0.0, 3.62405, 9.12015),
    ],
)
def test_a_short_run_ends_with_known_tables(
    corpus, tmp_path, variant, subsample, words, targets
):
    asked = config(corpus, variant, **{"objective.subsample": subsample})
    tables = trained(tmp_path, asked)["segment"]
    found = [float(np.linalg.norm(tables[name])) for name in ("words", "targets")]
    assert found == pytest.approx([words, targets], rel=1e-4)


@pytest.mark.parametrize(
    "variant, replicas", [("smoke", 1), ("smoke,simsiam", 1), ("smoke", 8)]
)
def test_a_run_that_was_cut_off_ends_with_the_same_parameters(
    corpus, tmp_path, variant, replicas, monkeypatch
):
    changes = {"objective.replicas": replicas}
    expected = trained(tmp_path / "whole", config(corpus, variant, **changes))
    put, save, puts = WordTrainer.put, Checkpointer.save, []

    def cut_off(self, batch):
        puts.append(batch)
        if len(puts) == 4:  # after the checkpoint of step 2
            raise KeyboardInterrupt
        return put(self, batch)

    def at_once(self, *state):  # nothing is written any more once a run is cut off
        save(self, *state)
        self.wait()

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Checkpointer, "save", at_once)
        patch.setattr(WordTrainer, "put", cut_off)
        trained(tmp_path / "cut", config(corpus, variant, **changes))
    again = trained(tmp_path / "cut", config(corpus, variant, **changes))
    assert same(again, expected)


def of_replicas(corpus, run, devices, variant="smoke", **changes):
    """The trainer of a config on some of the devices."""
    prepared = prepare(config(corpus, variant, **changes), run)
    objective = prepared.config.objective.built
    mesh = jax.sharding.Mesh(jax.devices()[:devices], ("data",))
    return WordTrainer(prepared, objective, mesh)


def steps_of(trainer, number):
    """The state after some steps, and the metrics of each."""
    data, metrics = trainer.dataset, []
    state = trainer.begin(
        initial_params(trainer.prepared.config, trainer.prepared.encoder)
    )
    state = sharding.replicate(state, trainer.mesh)
    for step in range(number):
        batch = trainer.put(data[step][0])
        state, found = trainer.step(state, batch, jax.random.key(0))
        metrics.append(jax.device_get(found))
    return jax.device_get(state), metrics


def test_replicas_learn_the_same_on_any_number_of_devices(corpus, tmp_path):
    changes = {"objective.replicas": 4, "batch": 24}
    one, two, four = (
        steps_of(of_replicas(corpus, tmp_path / "run", devices, **changes), 3)
        for devices in (1, 2, 4)
    )
    for other in (two, four):
        pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
        for a, b in pairs:
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_the_changes_of_replicas_are_added_up(corpus, tmp_path):
    """Each begins with the tables and statistics of the last step."""
    changes = {"objective.replicas": 2, "objective.weight": 0.0, "batch": 24}
    trainer = of_replicas(corpus, tmp_path / "run", 2, **changes)
    state, _ = steps_of(trainer, 1)
    batch, before = trainer.batches.dataset(2)[1][0], jax.device_get(state)
    after, found = trainer.step(
        sharding.replicate(state, trainer.mesh), trainer.put(batch), jax.random.key(0)
    )
    alone = of_replicas(
        corpus, tmp_path / "run", 1, **changes | {"objective.replicas": 1}
    )
    expected, losses = jax.tree.map(np.array, before), 0.0
    for i in range(2):
        part = jax.tree.map(operator.itemgetter(slice(i, i + 1)), batch)
        own, metrics = alone.step(before, alone.put(part), jax.random.key(0))
        expected = jax.tree.map(lambda e, o, b: e + (o - b), expected, own, before)
        losses += metrics["loss"] * part.blocks.total[0]
    expected = expected._replace(step=before.step + 1)
    for a, b in zip(jax.tree.leaves(after), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert float(found["loss"]) == pytest.approx(
        float(losses) / batch.blocks.total.sum(), rel=1e-5
    )


@pytest.mark.parametrize("variant", ["smoke", "smoke,simsiam"])
def test_a_step_waits_for_other_devices_once(corpus, tmp_path, variant):
    """Every sum over devices that waits holds a thread; a CPU has one for each device."""
    trainer = of_replicas(
        corpus, tmp_path / "run", 2, variant=variant, **{"objective.replicas": 2}
    )
    batch = trainer.put(trainer.dataset[0][0])
    state = trainer.begin(
        initial_params(trainer.prepared.config, trainer.prepared.encoder)
    )
    state = sharding.replicate(state, trainer.mesh)
    text = trainer.step.lower(state, batch, jax.random.key(0)).compile().as_text()
    waits = r" (all-\w+|reduce-scatter|collective-\w+)(?:-start)?\("
    assert re.findall(waits, text) == ["all-reduce"]


def test_devices_without_replicas_of_their_own_are_told(corpus, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        of_replicas(corpus, tmp_path / "two", 2)
        assert "replicas is 1: all 2 devices do the same work; a multiple of 2" in (
            caplog.text
        )
        caplog.clear()
        of_replicas(corpus, tmp_path / "one", 1)
        of_replicas(corpus, tmp_path / "shared", 2, **{"objective.replicas": 4})
    assert "devices" not in caplog.text


class Descent:
    """Table minus gradient, nothing else."""

    def init(self, table):
        return ()

    def update(self, table, state, gradients, decay):
        for rows, values in gradients:
            table = table.at[rows].add(-values)
        return table, state


@pytest.mark.parametrize("variant", ["smoke", "smoke,simsiam"])
def test_the_contrastive_update_is_the_gradient_over_whole_documents(
    corpus, tmp_path, variant
):
    prepared = prepare(config(corpus, variant, **{"objective.weight": 0.25}), tmp_path)
    objective = prepared.config.objective.built
    trainer = WordTrainer(prepared, objective, sharding.mesh())
    trainer.optimizer = Descent()
    batch, documents = trainer.dataset[1]
    state = trainer.begin(initial_params(prepared.config, prepared.encoder))
    generator = np.random.default_rng(0)
    table = generator.normal(size=state.params["segment"]["words"].shape)
    table = jnp.asarray(table, jnp.float32).at[0].set(0)
    state.params["segment"]["words"] = table
    views = trainer.put(batch).views
    after, loss, _ = jax.jit(trainer._contrast)(state, views, 100.0, 1.0, None)

    views = _views(prepared, documents)
    head = {name: state.params[name] for name in state.params if name != "segment"}
    apply = functools.partial(prepared.encoder.apply, {"params": head})

    size = len(table)
    shares = [[np.bincount(t, minlength=size) / len(t) for t in v] for v in views]

    def by_hand(table):
        means = jnp.array(shares, jnp.float32) @ table
        return objective.contrastive(apply(means, method="outputs"), NONE)[0]

    expected, slope = jax.jit(jax.value_and_grad(by_hand))(table)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    moved = table - after.params["segment"]["words"]
    np.testing.assert_allclose(moved, 25 * slope.at[0].set(0), atol=2e-5)


@pytest.mark.parametrize("fn", ["Adagrad", "Adam"])
def test_the_contrastive_update_is_one_whatever_the_blocks_hold(corpus, tmp_path, fn):
    """Rows without a word of the batch stay as they are, with their statistics."""
    found = []
    for microbatch in (128, 1024):
        optimizer = {"fn": f"docjax.training.rows.{fn}"}
        asked = config(corpus, microbatch=microbatch, batch=12, optimizer=optimizer)
        prepared = prepare(asked, tmp_path / str(microbatch))
        objective = prepared.config.objective.built
        trainer = WordTrainer(prepared, objective, sharding.mesh())
        even = np.arange(0, 29, 2)  # half of the words
        data = dataclasses.replace(trainer.batches, documents=even).dataset(1)
        views = trainer.put(data[0][0]).views
        state = trainer.begin(initial_params(prepared.config, prepared.encoder))
        size = state.params["segment"]["words"].shape
        table = np.random.default_rng(0).normal(size=size).astype(np.float32)
        table[0] = 0  # padding
        state.params["segment"]["words"] = jnp.asarray(table)
        ones = jax.tree.map(jnp.ones_like, state.optimizer.words)
        state = state._replace(optimizer=state.optimizer._replace(words=ones))
        after, _, _ = jax.jit(trainer._contrast)(state, views, 100.0, 1.0, None)
        idle = ~np.isin(np.arange(len(table)), views.words)
        assert 5 < idle.sum() < len(table) - 5
        for old, new in zip(
            (table, *jax.tree.leaves(ones)),
            (after.params["segment"]["words"], *jax.tree.leaves(after.optimizer.words)),
            strict=True,
        ):
            np.testing.assert_array_equal(old[idle], new[idle])
        found.append((int(views.used), after))
    (many, small), (one, large) = found
    assert many > one == 1
    for a, b in zip(jax.tree.leaves(small), jax.tree.leaves(large), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("limit", [None, 1])
def test_noise_is_drawn_by_the_counts_of_what_is_trained_on(
    corpus, tmp_path, caplog, limit
):
    limits = {"limits.segment_tokens": 16, "limits.training_units": limit}
    asked = config(corpus, transductive=False, **limits)
    prepared = prepare(asked, tmp_path)
    objective = prepared.config.objective.built
    with caplog.at_level(logging.INFO):
        noise = WordTrainer(prepared, objective, sharding.mesh()).batches.noise
    counts = sum(
        np.bincount(prepared.corpus[i].tokens[: limit and 16], minlength=len(noise))
        for i in prepared.trained_on.tolist()
    )
    cut = prepared.corpus.counts[prepared.trained_on] - 1
    said = f"{(cut > 0).sum()} training documents have more than 1 units: {cut.sum()} units"
    assert cut.any() and (said in caplog.text) == bool(limit)
    expected = counts**0.75 / (counts**0.75).sum()
    np.testing.assert_allclose(np.diff(noise, prepend=0), expected, atol=1e-9)


@pytest.mark.parametrize("transductive", [True, False])
def test_paraphrases_are_of_words_of_what_is_trained_on(corpus, tmp_path, transductive):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("wa\twc\n")
    views = {"fn": "docjax.views.replaced.Paraphrases", "path": str(pairs)}
    asked = config(corpus, transductive=transductive, views=views | {"least_count": 1})
    prepared = prepare(asked, tmp_path / "run")
    counts = prepared.views.vocabulary.counts
    read = [prepared.corpus[i].tokens for i in prepared.trained_on.tolist()]
    np.testing.assert_array_equal(
        counts, np.bincount(np.concatenate(read), minlength=len(counts))
    )
    assert (counts.sum() == len(prepared.corpus.tokens)) == transductive


def test_the_learning_rate_falls_to_nothing(corpus, tmp_path, monkeypatch):
    prepared = prepare(config(corpus, steps=8), tmp_path)
    objective = prepared.config.objective.built
    trainer = WordTrainer(prepared, objective, sharding.mesh())
    rates = []
    monkeypatch.setattr(
        trainer, "_block", lambda s, b, i, decay: (s, jnp.zeros(2) + decay)
    )
    monkeypatch.setattr(
        trainer, "_contrast", lambda s, v, w, decay, key: (s, jnp.float32(0), {})
    )
    state, steps = trainer.begin(initial_params(prepared.config, prepared.encoder)), 8
    assert trainer.steps == steps
    for step in range(steps):
        batch = trainer.dataset[step][0]
        state, found = trainer.step(state, trainer.put(batch), jax.random.key(0))
        rates.append(float(found["grad_norm"]) ** 2 / int(batch.blocks.used.sum()))
    np.testing.assert_allclose(rates, 1 - np.arange(steps) / steps, rtol=1e-5)


def _views(prepared, documents, step=1):
    """The words of each view and document, as that step draws them."""
    generator = np.random.default_rng((prepared.config.seed, step, 1))
    views = prepared.views(prepared.corpus.concatenated(documents), generator)
    return [
        [view.take(np.flatnonzero(view.documents == i)).tokens for i in documents]
        for view in views
    ]


def test_documents_of_unknown_words_are_told_and_have_zero_vectors(
    corpus, tmp_path, caplog
):
    with caplog.at_level(logging.WARNING):
        trained(tmp_path, config(corpus))
    assert "1 of 30 training documents have no word of the vocabulary" in caplog.text
    model = docjax.load(tmp_path)
    with caplog.at_level(logging.WARNING):
        vectors = model.encode(["wa wb wb", "once never", "wb wa wb once"])
        model.encode_queries(["wa", "once"])
    assert "1 of 3 documents have no word of the vocabulary" in caplog.text
    assert "1 of 2 queries have no word of the vocabulary" in caplog.text
    counts = model.encode(["wa", "once"], return_stats=True)[1]
    assert (counts["documents"], counts["documents_empty"]) == (2, 1)
    table = np.asarray(model.params["segment"]["words"])
    a, b = (model.tokenizer.encode([word])[0][0] for word in ("wa", "wb"))
    np.testing.assert_allclose(vectors[0], (table[a] + 2 * table[b]) / 3, rtol=1e-5)
    assert not vectors[1].any()
    np.testing.assert_allclose(vectors[2], vectors[0], rtol=1e-6)


def test_all_documents_are_trained_on_or_those_of_the_training_part(corpus, tmp_path):
    prepared = prepare(config(corpus), tmp_path / "all")
    assert len(prepared.trained_on) == 30
    prepared = prepare(config(corpus, transductive=False), tmp_path / "part")
    assert prepared.trained_on.tolist() == prepared.rows("train").tolist()
    assert len(prepared.trained_on) == 25


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"optimizer.fn": "docjax.training.optimizer.adamw"}, "adamw updates whole"),
        ({"views.fn": "docjax.views.whole.Whole"}, "reads views of .*, not Whole"),
        (
            {"objective.replicas": 12},
            "replicas 12 does not divide over 8 devices: .* 8",
        ),
        (
            {"objective.replicas": 8, "optimizer.fn": "docjax.training.rows.Adam"},
            "replicas 8: .* moments of docjax.training.rows.Adam",
        ),
        ({"objective.replicas": 0}, "'replicas': 0.*at least 1"),
        ({"microbatch": 100}, "microbatch 100: give a multiple of 32"),
        ({"encoder.segment.fn": "docjax.encoders.transformer.Transformer"}, "trains"),
        ({"init": "TINY", "encoder.segment.vocabulary": 30522}, "init .* does not fit"),
        (
            {"limits.training_segments": 2},
            "training_segments 2: words .*limits.training_units",
        ),
        ({"limits.training_tokens": 9}, "training_tokens 9: words .*training_units"),
        ({"encoder.frozen": "head/"}, "encoder.frozen is 'head/' .* to ''"),
        (
            {
                "encoder.document": {
                    "fn": "docjax.encoders.graph_attention.GraphAttention"
                }
            },
            "encoder.document GraphAttention; set .*pooling.Mean",
        ),
    ],
)
def test_parts_that_do_not_fit_are_named(corpus, tmp_path, changes, message, tiny):
    asked = config(corpus, **changes)
    asked.init = str(tiny) if "init" in changes else None
    if "Transformer" in asked.encoder.segment.fn:
        shape = dict(layers=1, width=16, heads=2, hidden=16, positions=520)
        asked.encoder.segment.update(shape)
        message = "negative_sampling trains encoder.segment .*WordAverage, not Transf"
    with pytest.raises(UserError, match=message):
        trained(tmp_path, asked)


def test_rewritten_texts_are_cut_as_their_documents(corpus, tmp_path):
    lines = [json.loads(line) for line in corpus.read_text().splitlines()]
    path = tmp_path / "back.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    views = {"fn": "docjax.views.rewritten.Rewritten", "path": str(path)}
    limits = {"limits.segment_tokens": 4, "limits.training_units": 2}
    prepared = prepare(config(corpus, views=views, **limits), tmp_path / "run")
    objective = prepared.config.objective.built
    trainer = WordTrainer(prepared, objective, sharding.mesh())
    lengths = trainer.dataset[0][0].views.lengths
    assert lengths.max() == 8 and (lengths[0] == lengths[1]).all()


def changed(corpus, path, change):
    """The corpus with every record changed."""
    lines = [json.loads(line) for line in corpus.read_text().splitlines()]
    path.write_text("".join(json.dumps(change(line)) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    "change, message",
    [
        ({"text": "中文 中文"}, "the vocabulary has 0 words, of 0 that occur"),
        ({"text": "same same same"}, "the vocabulary has 1 words, of 1 that occur"),
    ],
)
def test_a_corpus_that_cannot_be_used_is_told(corpus, tmp_path, change, message):
    path = changed(corpus, tmp_path / "changed.jsonl", lambda line: line | change)
    asked = config(path, tasks=deca.get_config("smoke").tasks)
    with pytest.raises(UserError, match=message) as caught:
        main.run(asked, tmp_path / "run", "train")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"split": "train"}, "there is no labelled test document"),
        ({"label": "one"}, "documents have the label 'one'"),
    ],
)
def test_a_corpus_whose_labels_are_too_few_is_trained_on_and_told(
    corpus, tmp_path, caplog, no_report, facts, message
):
    change = lambda line: line | facts
    path = changed(corpus, tmp_path / "changed.jsonl", change)
    asked = config(path, tasks=deca.get_config("smoke").tasks)
    with caplog.at_level(logging.WARNING):
        main.run(asked, tmp_path / "run", "train")
    assert message in caplog.text
    assert docjax.load(tmp_path / "run").encode(["wa wb"]).any()


def test_lexicons_are_read_only_to_train_on_paraphrases(corpus, tmp_path, no_report):
    """Without them Doc2vecC is trained, and a trained run is evaluated."""
    missing = {"views.lexicons": str(tmp_path), "tokenizer.train.stop_words": False}
    missing |= {"batch": 8, "steps": 1, "epochs": None, "encoder.segment.width": 4}
    asked = deca.get_config("r8")
    asked.source.path = str(corpus)
    asked.update_from_flattened_dict(missing)
    with pytest.raises(UserError, match="wordnet is not in"):
        main.run(asked, tmp_path / "deca", "train")
    # Nothing was read before.
    assert [path.name for path in (tmp_path / "deca").iterdir()] == ["lock"]
    asked.objective.weight = 0.0
    for mode in ("train", "evaluate"):
        assert main.run(asked, tmp_path / "doc2vecc", mode)
