"""Typed sections: what a config must say, and what they give back."""

import dataclasses
import json

import pytest

from configs import (
    colde,
    deca,
    docsplit,
    graph_roberta,
    graph_roberta_classify,
    retriever,
)
from docjax.errors import UserError
from docjax.parts.named import plain
from docjax.run import fields

SMOKE = plain(graph_roberta.get_config("smoke"))
NAN = float("nan")
CLUSTERING = {"fn": "docjax.tasks.clustering.Clustering"}


def best(metric: str) -> dict:
    return {"fn": "docjax.keep.Best", "metric": metric}


def changed(path: str, value) -> dict:
    """The smoke config with the value at a dotted path changed."""
    config = json.loads(json.dumps(SMOKE))
    node, *_, last = config, *path.split(".")
    for name in path.split(".")[:-1]:
        node = node[name]
    node[last] = value
    return config


def without(path: str) -> dict:
    config = changed(path, None)
    *parents, last = path.split(".")
    node = config
    for name in parents:
        node = node[name]
    del node[last]
    return config


def message(config) -> str:
    with pytest.raises(UserError) as error:
        fields.resolve(config)
    text = str(error.value)
    assert "\n" not in text and len(text) < 500
    return text


def test_fields_are_read_by_name():
    config = fields.resolve(SMOKE)
    assert config.limits.segment_tokens == 32
    assert config.splits.validation is None
    assert config.objective.to_json() == {
        "fn": "docjax.objectives.infonce.infonce",
        "similarity": "cosine",
        "symmetric": True,
        "temperature": 0.05,
    }
    assert config.keep.to_json() == {"fn": "docjax.keep.Last"}
    assert config.tasks["clustering"].fn == "docjax.tasks.clustering.Clustering"
    assert config.report.compare == () and config.labels is None


@pytest.mark.parametrize(
    "module",
    [colde, deca, docsplit, graph_roberta, graph_roberta_classify, retriever],
)
def test_a_config_comes_back_from_its_sections_as_it_was(module):
    for variant in module.VARIANTS:
        config = plain(module.get_config(variant))
        assert fields.resolve(config).to_json() == config, variant
        saved = json.loads(json.dumps(config))
        assert fields.resolve(saved) == fields.resolve(config), variant


def test_a_field_that_docjax_fills_in_may_not_say_otherwise():
    """The config.json of a run is a config, too."""
    assert message(SMOKE | {"allow": ["a."]}).startswith(
        "config has allow: leave it out"
    )
    read = fields.resolve(SMOKE).with_facts()
    again = fields.resolve(read.to_json()).with_facts()
    assert again == read and again.similarity == "cosine"
    with pytest.raises(UserError, match="similarity 'dot', but objective .* 'cosine'"):
        fields.resolve(SMOKE | {"similarity": "dot"}).with_facts()


def test_nobody_can_change_a_config():
    given = json.loads(json.dumps(SMOKE))
    config = fields.resolve(given)
    given["encoder"]["segment"]["layers"] = 7
    config.to_json()["encoder"]["segment"]["layers"] = 7
    assert config.to_json() == SMOKE
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.limits.segment_tokens = 7
    for keywords in (config.encoder.keywords, config.encoder.keywords["segment"]):
        with pytest.raises(TypeError, match="not support item assignment"):
            keywords["layers"] = 7
    with pytest.raises(TypeError, match="not support item assignment"):
        config.tasks["clustering"] = None


@pytest.mark.parametrize(
    "path, value, text",
    [
        ("seed", -1, "seed -1 is not a whole number from 0 to 2**31 - 1"),
        ("seed", True, "seed True is not a whole number"),
        ("batch", True, "batch True is not a whole number from 1"),
        ("batch", "8", "batch '8' is not"),
        ("batch", 8.0, "batch 8.0 is not"),
        ("microbatch", 0, "microbatch 0 is not"),
        ("steps", -4, "steps -4 is not a whole number from 1 to 2**31 - 1 or None"),
        ("steps", NAN, "steps nan is not"),
        ("steps", None, "neither epochs nor steps"),
        ("checkpoint_every", 0, "checkpoint_every 0 is not"),
        ("limits.training_segments", 0, "limits.training_segments 0 is not"),
        ("limits.segment_tokens", None, "limits.segment_tokens None is not"),
        ("limits", 512, "limits 512 is not a dict of segment_tokens, query_tokens"),
        ("limits", None, "limits None is not a dict"),
        ("limits.words", 3, "unknown fields limits.words; the fields of limits are"),
        ("tokenizer", "bert", "tokenizer 'bert' is not a dict of path, train"),
        ("splits.train", None, "splits.train None is not a text"),
        ("transductive", 1, "transductive 1 is not True or False"),
        ("tensorboard", "no", "tensorboard 'no' is not True or False"),
        ("init", 3, "init 3 is not a text or None"),
        ("report.compare", "runs/a", "report.compare 'runs/a' is not a list, each a"),
        ("report.compare", [3], "report.compare [3] is not a list, each a text"),
        ("tasks", [], "tasks [] is not a dict of names and parts"),
        ("tasks.clustering", None, "tasks.clustering None is not a part: give dict(fn"),
        ("keep", best("accuracy"), "keep.metric 'accuracy' is not a metric of a task"),
        (
            "keep",
            best("clustering/nmi"),
            "needs validation documents: name their split",
        ),
        ("temprature", 1.0, "unknown fields temprature; the fields of a config are"),
        ("objective.temperature", "a", "objective.temperature 'a' is not a number"),
        ("tasks.figures", CLUSTERING, "tasks.figures: a task has a folder of its name"),
        ("tasks./tmp/a", CLUSTERING, "tasks./tmp/a: a task has a folder of its name"),
        ("tasks.clustering.seed", True, "tasks.clustering.seed True is not a whole"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_what_its_field_takes(
    path, value, text
):
    assert text in message(changed(path, value))


@pytest.mark.parametrize("path", ["batch", "limits.query_tokens", "splits.test"])
def test_a_missing_field_is_named(path):
    assert message(without(path)) == f"config has no field {path}"


@pytest.mark.parametrize("config", [None, 3, "x", []])
def test_a_config_that_is_no_dict_is_refused(config):
    assert "is not a dict of seed, source" in message(config)


@pytest.mark.parametrize(
    "path, value",
    [
        ("evaluate_every", 0),
        ("limits.training_segments", None),
        ("optimizer.learning_rate", 1),
        ("tasks", {}),
    ],
)
def test_values_at_the_border_are_accepted(path, value):
    assert fields.resolve(changed(path, value)).to_json() == changed(path, value)


def test_a_run_of_an_earlier_docjax_is_refused_in_one_line(tmp_path):
    old = {name: value for name, value in SMOKE.items() if name != "units"}
    (tmp_path / "config.json").write_text(json.dumps(old))
    with pytest.raises(UserError) as error:
        fields.read(tmp_path)
    assert "config.json: config has no field units; if an earlier" in str(error.value)


def test_a_saved_config_is_read_again(tmp_path):
    config = fields.resolve(SMOKE).with_facts()
    config = dataclasses.replace(config, labels=("a", "b"))
    (tmp_path / "config.json").write_text(json.dumps(config.to_json()))
    assert fields.read(tmp_path) == config and config.similarity == "cosine"


@pytest.mark.parametrize(
    "given", ["x", {"row": 1.0}, {"a": {"b": {"c": {"d": 1}}}}, {"row": {"f1": "0.5"}}]
)
def test_published_figures_that_are_none_are_refused_when_the_config_is_read(given):
    with pytest.raises(UserError, match=r"report.published .*dict\(ROW=dict\(METRIC="):
        fields.resolve(changed("report.published", given))


def test_published_figures_are_of_rows_or_of_tasks():
    for given in (None, {"row": {"f1": 0.5}}, {"task": {"row": {"f1": 1}}}):
        assert fields.resolve(changed("report.published", given))
