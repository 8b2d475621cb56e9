"""A part may stand where it is used, and nowhere else."""

import functools
import sys

import jax
import jax.numpy as jnp
import pytest

from configs import graph_roberta
from docjax.errors import UserError
from docjax.objectives.infonce import infonce
from docjax.parts.named import plain
from docjax.run.places import read_part

SMOKE = plain(graph_roberta.get_config("smoke"))
JSONL = "docjax.data.sources.jsonl.jsonl"


def message(node, path: str) -> str:
    with pytest.raises(UserError) as error:
        read_part(node, path)
    text = str(error.value)
    assert "\n" not in text
    return text


def test_a_part_is_built_with_its_keywords():
    part = read_part(SMOKE["objective"], "objective")
    built = part.built
    assert isinstance(built, functools.partial) and built.func is infonce
    assert built.keywords == dict(part.keywords)


def test_changed_keywords_leave_the_part_as_it_was():
    part = read_part(SMOKE["encoder"], "encoder")
    small = part.with_keywords(segment={**part.keywords["segment"], "layers": 9})
    assert part.to_json() == SMOKE["encoder"]
    assert small.built.segment.layers == 9


@pytest.mark.parametrize(
    "path, fn",
    [
        ("source", "docjax.data.graphs.full"),
        ("objective", "docjax.views.halves.Halves"),
        ("objective", "subprocess.Popen"),
        ("optimizer", "docjax.training.loop.Stopped"),
        ("encoder", "docjax.encoders"),
        ("units", None),
        ("units", 3),
    ],
)
def test_a_function_from_another_folder_is_refused(path, fn):
    assert message({"fn": fn}, path).startswith(f"{path}.fn {fn!r} is not under docjax")


@pytest.mark.parametrize(
    "path, node, text",
    [
        (
            "source",
            {"fn": JSONL},
            "takes (path), a source takes (): set --config.source.path",
        ),
        ("source", {"fn": "docjax.data.sources.pydocs.stamp"}, "that gives Iterator"),
        (
            "graph",
            {"fn": "docjax.data.graphs.adjacency"},
            "a graph takes (segments, sections, edges)",
        ),
        (
            "encoder",
            {"fn": "docjax.encoders.pooling.Mean"},
            "an encoder is as docjax.encoders.document.DocumentEncoder says",
        ),
        ("holdout", {"fn": "docjax.data.splits.rows"}, "a holdout takes (documents)"),
        ("tokenizer.train", {"fn": "docjax.data.tokenizer.check_fits"}, "vocabulary"),
        (
            "views",
            {"fn": "docjax.views.rewritten.write"},
            "a maker of views is as docjax.types.ViewMaker says",
        ),
    ],
)
def test_a_function_with_another_use_is_refused(path, node, text):
    assert text in message(node, path) and node["fn"] in message(node, path)


@pytest.mark.parametrize("node", [None, 3, "docjax.data.units.whole", [], {}, {"x": 1}])
def test_what_is_no_part_is_refused(node):
    assert "is not a part: give dict(fn='docjax.data.units...." in message(
        node, "units"
    )


def test_keywords_of_inner_parts_are_named_with_their_path():
    node = SMOKE["encoder"] | {"segment": SMOKE["encoder"]["segment"] | {"heads": "4"}}
    text = "encoder.segment.heads '4' is not a whole number from 0 to 2**31 - 1"
    assert message(node, "encoder").startswith(text)


def test_a_package_whose_name_ends_with_docjax_is_not_ours(tmp_path, monkeypatch):
    """The result of foreign functions is not annotated by docjax's rules."""
    (tmp_path / "mydocjax").mkdir()
    (tmp_path / "mydocjax/loss.py").write_text("def loss(vectors, targets): ...")
    monkeypatch.syspath_prepend(tmp_path)
    read_part({"fn": "mydocjax.loss.loss"}, "objective", ("mydocjax.",))


def test_what_a_task_reads_is_checked_as_docjax_evaluate_does(tmp_path, monkeypatch):
    (tmp_path / "reader.py").write_text(
        "from docjax.tasks.clustering import Clustering\n"
        "class Mine(Clustering):\n  reads = 'everything'"
    )
    monkeypatch.syspath_prepend(tmp_path)
    line = "tasks.a reader.Mine is no task: it reads 'everything', which is not one of"
    with pytest.raises(UserError, match=line):
        read_part({"fn": "reader.Mine"}, "tasks.a", ("reader.",))


@pytest.mark.parametrize("shift", [-2, (-2, 3), None])
def test_whole_numbers_of_foreign_parts_may_be_negative(tmp_path, monkeypatch, shift):
    (tmp_path / "shifts.py").write_text(
        "def loss(v, targets, shift: int | tuple[int, int] | None = -1): ..."
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shifts", raising=False)
    node = {"fn": "shifts.loss", "shift": shift}
    assert read_part(node, "objective", ("shifts.",)).built.keywords["shift"] == shift
    with pytest.raises(UserError, match="shift 0.5 is not a whole number from -2"):
        read_part(node | {"shift": 0.5}, "objective", ("shifts.",))


@pytest.mark.parametrize(
    "node",
    [
        {"fn": "optax.adamw", "weight_decay": 0.1},
        {"fn": "optax.adafactor", "weight_decay_rate": 0.1},
        {"fn": "optax.lars", "weight_decay": 0.1},
        {"fn": "optax.apply_if_finite", "max_consecutive_errors": 3}
        | {"inner": {"fn": "optax.adamw", "learning_rate": 0.1, "weight_decay": 0.1}},
    ],
)
def test_optimizers_of_optax_decay_no_biases(node):
    rate = {} if "inner" in node else {"learning_rate": 0.1}
    optimizer = read_part(node | rate, "optimizer").built(10)
    params = {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}
    zeros = jax.tree.map(jnp.zeros_like, params)
    update, _ = optimizer.update(zeros, optimizer.init(params), params)
    assert not update["bias"].any() and update["kernel"].all()


@pytest.mark.parametrize(
    "fn, keyword",
    [
        ("optax.novograd", "weight_decay"),
        ("optax.contrib.schedule_free_adamw", "weight_decay"),
        ("optax.contrib.muon", "adam_weight_decay"),
    ],
)
def test_weight_decay_that_no_mask_keeps_from_biases_is_refused(fn, keyword):
    node = {"fn": fn, "learning_rate": 0.1}
    text = message(node | {keyword: 0.1}, "optimizer")
    assert text.startswith(f"optimizer.{keyword} 0.1: {fn} has no mask")
    read_part(node | {keyword: 0.0}, "optimizer")
