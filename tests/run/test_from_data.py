"""What the data of a run fill in."""

import json

import pytest

from configs import graph_roberta, graph_roberta_classify
from docjax.errors import UserError
from docjax.parts.named import plain
from docjax.run import fields, from_data

SMOKE = plain(graph_roberta.get_config("smoke"))
CLASSIFIER = plain(graph_roberta_classify.get_config("smoke"))


def test_the_head_gets_the_classes_of_the_documents():
    filled = from_data.fill_classes(fields.resolve(CLASSIFIER), ["a", "b", "c"])
    assert filled.encoder.keywords["head"]["classes"] == 3
    assert filled.labels == ("a", "b", "c")
    assert from_data.fill_classes(filled, ["a", "b", "c"]) == filled
    with pytest.raises(
        UserError, match="has 3 classes, but the documents have 2 labels"
    ):
        from_data.fill_classes(filled, ["a", "b"])
    with pytest.raises(UserError, match="at least 2 labels are needed"):
        from_data.fill_classes(fields.resolve(CLASSIFIER), ["a"])


def test_a_config_without_classes_keeps_no_labels():
    config = fields.resolve(SMOKE)
    assert from_data.fill_classes(config, ["a", "b"]) is config


def test_the_vocabulary_is_that_of_the_trained_tokenizer_or_of_the_run(tmp_path):
    config = fields.resolve(SMOKE)
    filled = from_data.fill_vocabulary(config, 300)
    assert filled.encoder.keywords["segment"]["vocabulary"] == 300
    (tmp_path / "config.json").write_text(json.dumps(filled.to_json()))
    (tmp_path / "checkpoints").mkdir()
    onward = fields.resolve(SMOKE | {"init": str(tmp_path)})
    onward = from_data.fill_vocabulary(onward, 400)
    assert onward.encoder.keywords["segment"]["vocabulary"] == 300


@pytest.mark.parametrize("change", [{"init": "roberta-base"}, {"tokenizer": "a"}])
def test_a_named_tokenizer_leaves_the_vocabulary(change):
    if "tokenizer" in change:
        change = {"tokenizer": SMOKE["tokenizer"] | {"path": "a"}}
    config = fields.resolve(SMOKE | change)
    assert from_data.fill_vocabulary(config, 300) == config


def test_the_vocabulary_of_towers_is_that_of_their_encoder():
    segment = SMOKE["encoder"]["segment"]
    towers = {"fn": "docjax.encoders.towers.Towers", "encoder": segment}
    config = fields.resolve(SMOKE | {"encoder": SMOKE["encoder"] | {"segment": towers}})
    filled = from_data.fill_vocabulary(config, 300)
    assert filled.encoder.built.segment.vocabulary == 300
