"""What `--mode=plan` says is what a run then reads, holds and takes."""

import json
import math
import random
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from configs import (
    colde,
    contrastive_tension,
    contriever,
    deca,
    docsplit,
    graph_roberta,
    masked_lm,
    retriever,
    siamese,
)
from docjax import main
from docjax.errors import UserError
from docjax.run import duration, frozen
from docjax.run.prepare import prepare
from docjax.training import loop, memory, plan, plan_memory, plan_table, sharding

WORDS = "graph node passage vector batch token the of and loss seed view".split()
pytestmark = pytest.mark.usefixtures("one_device")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """40 documents of two labels and 2 to 6 sentences."""
    chance, path = random.Random(0), tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    path.write_text("".join(json.dumps(document(i, chance)) + "\n" for i in range(40)))
    return path


def document(number: int, chance: random.Random) -> dict:
    sentences = [
        " ".join(chance.choices(WORDS, k=chance.randint(4, 20))).capitalize()
        for _ in range(chance.randint(2, 6))
    ]
    split, label = "test" if number % 5 == 4 else "train", "ab"[number % 2]
    text = ". ".join(sentences) + "."
    return {"id": f"d{number}", "text": text, "label": label, "split": split}


def config(corpus, recipe, variant="smoke", **changes):
    asked = recipe.get_config(variant)
    asked.source = {"fn": "docjax.data.sources.jsonl.jsonl", "path": str(corpus)}
    fields = {"batch": 8, "steps": 4, "epochs": None, "log_every": 4, "tasks": {}}
    if recipe is not deca:
        fields["limits.segment_tokens"] = 16  # few widths to compile
    if recipe is graph_roberta:
        fields["units.words"] = 10
    asked.update_from_flattened_dict(fields | changes)
    return asked


def logged(asked, run) -> dict:
    """The metrics of the last step, when the same config is trained."""
    prepared, mesh = prepare(asked, run), sharding.mesh()
    loop.train(prepared, main._trainer(prepared, mesh), mesh, lambda *_: {})
    return json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])


@pytest.mark.parametrize("recipe", [docsplit, deca])
def test_the_plan_says_what_the_steps_then_read(
    recipe, corpus, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(plan, "memory_of", lambda *_: {})  # takes long to compile
    asked = config(corpus, recipe)
    planned = main.run(asked, tmp_path / "absent", "plan")
    assert not (tmp_path / "absent").exists()
    assert "padding" in capsys.readouterr().err
    line = logged(asked, tmp_path / "run")
    assert planned["steps"] == line["step"] == planned["counted_over_steps"]
    assert planned["padding"] == pytest.approx(line["data/padding"])
    assert planned["cut"] == pytest.approx(line.get("data/cut", 0.0))
    rates = line["time/documents_per_s"], line["time/tokens_per_s"]
    per_step = [rate * line["time/step_s"] for rate in rates]
    expected = planned["documents_a_step"], planned["tokens_a_step"]
    assert per_step == pytest.approx(expected)
    assert planned["masked_copies"] == (recipe is docsplit)
    json.dumps(planned)


@pytest.mark.parametrize("recipe", [contriever, contrastive_tension, masked_lm])
def test_the_baselines_are_planned(recipe, corpus, tmp_path):
    planned = main.run(config(corpus, recipe), tmp_path / "absent", "plan")
    memory = planned["memory"]
    assert memory["largest"] > memory["parameters"] > 0
    remembered = memory["objective"] > memory["parameters"]  # an encoder that follows
    assert remembered == (recipe is contriever)
    assert planned["seconds"] == 4 * planned["seconds_a_step"] > 0
    assert planned["documents_a_step"] == 8 and planned["tokens_a_step"] > 8
    assert not planned["masked_copies"]  # masked_lm reads masked tokens only


@pytest.fixture(scope="module")
def linked(corpus, tmp_path_factory):
    """The documents with a link and a query each, which pairs and retrievers need."""
    path = tmp_path_factory.mktemp("linked") / "corpus.jsonl"
    documents = map(json.loads, corpus.read_text().splitlines())
    lines = (
        json.dumps(each | {"links": [f"d{(i + 5) % 40}"], "query": WORDS[i % 12]})
        for i, each in enumerate(documents)
    )
    path.write_text("\n".join(lines))
    return path


LONG = {  # encoders for long texts: docsplit's variants of them have no small form
    "longformer.Longformer": dict(positions=34, window=(4,)),
    "bigbird.BigBird": dict(positions=34),
    "modernbert.ModernBert": dict(window=4),
}


@pytest.mark.parametrize(
    "recipe, encoder",
    [
        *((recipe, None) for recipe in (colde, siamese, retriever, deca)),
        *((docsplit, name) for name in LONG),
    ],
    ids=["colde", "siamese", "retriever", "deca", *LONG],
)
def test_memory_and_time_are_planned_for(recipe, encoder, linked, tmp_path, capsys):
    changes = {"batch": 4, "steps": 1}
    if recipe is not deca:  # one width to compile
        lengths = {"limits.segment_tokens": 6, "limits.query_tokens": 6}
        changes |= lengths | {"microbatch": 4}
    asked = config(linked, recipe, **changes)
    if encoder:
        sizes = dict(vocabulary=8192, layers=1, width=16, heads=2, hidden=16)
        sizes |= dict(pooling="mean", dropout=0.0) | LONG[encoder]
        asked.encoder.segment = dict(fn=f"docjax.encoders.{encoder}") | sizes
        asked.objective = asked.objective.contrastive  # no head for masked words
    planned = main.run(asked, tmp_path, "plan")
    memory = planned["memory"]
    assert all(math.isfinite(value) for value in memory.values())
    assert memory["largest"] > memory["parameters"] > 0
    assert math.isfinite(planned["seconds"]) and planned["seconds"] > 0
    shown = capsys.readouterr().err
    for words in ("padding", "most at a time", "s a step"):
        assert words in shown


def planned_and_trainer(asked, run):
    prepared, mesh = frozen.with_stand_ins(prepare(asked, run)), sharding.mesh()
    made = []

    def trainer(prepared):
        made.append(main._trainer(prepared, mesh))
        return made[-1]

    return plan.plan(prepared, mesh, trainer), made


def test_memory_is_that_of_the_state_and_of_the_check(corpus, tmp_path, monkeypatch):
    held = []
    check = memory.held_bytes
    monkeypatch.setattr(
        memory, "held_bytes", lambda *a: held.append(check(*a)) or held[-1]
    )
    planned, (trainer,) = planned_and_trainer(config(corpus, docsplit), tmp_path)
    found = planned["memory"]
    params = loop._start(trainer.prepared)
    state = trainer.begin(params)
    size = lambda tree: sum(array.nbytes for array in jax.tree.leaves(tree))
    assert found["parameters"] == size(state.params)
    assert found["optimizer"] == size(state.optimizer)
    # The check before the first step compares this sum with the device's memory.
    assert held[0] == held[-1]
    batches, kept = trainer.batches, found["activations"]
    microbatches = -(-batches.segments() // batches.layout.rows)
    assert trainer.cache.keep >= microbatches > 1 and kept % microbatches == 0 < kept
    assert found["largest"] == max(
        held[0] + found["microbatch"] + kept - kept // microbatches,
        found["second_pass"] + size((state.optimizer, state.params["segment"])),
    )
    gradient = found["parameters"]
    assert found["microbatch"] > found["parameters"] + gradient


def test_a_larger_micro_batch_holds_more(corpus, tmp_path, monkeypatch):
    """Without kept activations, whose sum does not depend on the micro-batch."""
    monkeypatch.setattr(memory, "most_kept", lambda *_: 0)

    def largest(rows: int) -> int:
        asked = config(corpus, docsplit, microbatch=rows)
        prepared, mesh = prepare(asked, tmp_path / str(rows)), sharding.mesh()
        trainer = main._trainer(prepared, mesh)
        params = loop._start(prepared)
        return plan_memory.memory_of(trainer, params, mesh)["largest"]

    assert largest(16) > 1.5 * largest(4)


def test_a_large_batch_is_timed_in_part(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "CALLS", 2)
    monkeypatch.setattr(plan, "memory_of", lambda *_: {})
    monkeypatch.setattr(memory, "most_kept", lambda *arguments: arguments[-1])
    asked = config(corpus, graph_roberta, microbatch=8)
    planned, (whole, part) = planned_and_trainer(asked, tmp_path)
    assert 1 <= part.batches.batch < 8 and whole.batches.batch == 8
    assert planned["documents_a_step"] == 8
    # The part keeps what the whole would, not what its own batch has room for.
    assert part.cache.keep == whole.cache.keep > part.batches.segments()


def test_an_objective_that_needs_more_documents_is_timed_whole(
    corpus, tmp_path, monkeypatch
):
    monkeypatch.setattr(plan, "CALLS", 2)
    monkeypatch.setattr(plan, "memory_of", lambda *_: {})
    asked = config(corpus, contrastive_tension, batch=16, microbatch=1)
    planned, (whole, part) = planned_and_trainer(asked, tmp_path)
    assert part.batches.batch <= 7 < whole.batches.batch  # 7 negatives of a document
    assert planned["documents_a_step"] == 16 and planned["seconds_a_step"] > 0


def test_the_time_of_a_step_grows_with_what_the_part_leaves_out(monkeypatch):
    same = lambda value: value
    trainer = SimpleNamespace(
        **dict(steps=9, mesh=sharding.mesh(), begin=same, put=same),
        **dict(dataset=[(None, np.zeros(3))] * 9),
        measure=lambda batch: {"computed": 10},
    )
    seconds = iter([5.0, 1.0, 1.0, 2.0, 1.0, 3.0])  # each second one is compiled before
    step = lambda trainer, state, batch: (state, next(seconds))
    monkeypatch.setattr(plan, "_timed_step", step)
    assert plan._timed(trainer, {}, 40.0) == pytest.approx((1 + 2 + 3) / 3 * 4)


def test_units_that_are_read_once_get_stand_ins(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(duration, "seconds_a_token", lambda *_: 1.0)
    fields = {"encoder.frozen": "segment/", "encoder.segment.dropout": 0.0}
    asked = config(corpus, graph_roberta, **fields)
    planned, (trainer,) = planned_and_trainer(asked, tmp_path)
    assert not list((tmp_path / "corpus").glob("vectors-*"))
    units = trainer.prepared.corpus
    assert units.vectors[0].shape == (len(units.lengths), 32)
    assert planned["positions_a_step"] == 0 and "microbatch" not in planned["memory"]
    steps = planned["steps"] * planned["seconds_a_step"]
    assert planned["seconds"] == pytest.approx(steps + units.lengths.sum())


def test_a_plan_of_several_processes_is_refused(corpus, monkeypatch, tmp_path):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(UserError, match="leave out --distributed"):
        main.run(config(corpus, docsplit), tmp_path, "plan")


def test_tasks_that_lack_data_are_a_mistake_of_the_plan_too(corpus, tmp_path):
    task = {"fn": "docjax.tasks.retrieval.Retrieval"}  # no document has a query
    asked = config(corpus, docsplit, tasks={"retrieval": task})
    told = []
    for mode in ("plan", "train"):
        with pytest.raises(UserError) as caught:
            main.run(asked, tmp_path / "run", mode)
        told.append(str(caught.value))
    assert told[0] == told[1] and "\n" not in told[0]


def test_the_table_shows_every_count_of_bytes():
    names = {name: 2**20 * i for i, name in enumerate(plan_table.BYTES, start=1)}
    shown = plan_table.table(
        {
            **dict(steps=1000, epochs=2.5, counted_over_steps=8, documents_a_step=36),
            **dict(
                masked_copies=True,
                tokens_a_step=18000.0,
                positions_a_step=2e4,
                padding=0.1,
                cut=0,
            ),
            **dict(memory=names, seconds_a_step=0.25, seconds=250.0),
        }
    )
    assert "18,000 over the first 8 steps, and as many with some" in shown
    assert "1,000, 2.5 epochs" in shown and "10.0% of 20,000 places" in shown
    assert "about 4 min, 0.25 s a step, without compiling" in shown
    for number, words in enumerate(plan_table.BYTES.values(), start=1):
        (line,) = [line for line in shown.splitlines() if words in line.split("  ")]
        assert line.endswith(f"{number:,.1f} MiB")
