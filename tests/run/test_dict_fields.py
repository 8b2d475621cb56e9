"""What a config must say, and how a run continues with it."""

import json

import pytest

from configs import graph_roberta
from docjax.config import plain
from docjax.errors import UserError
from docjax.run import dict_fields as fields


def config(**changes) -> dict:
    found = graph_roberta.get_config("smoke")
    found.update_from_flattened_dict(changes)
    return plain(found)


def test_the_shipped_config_says_all():
    fields.check(config())


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"seed": -1}, "seed -1 is not"),
        ({"steps": -4}, "steps -4 is not a number of at least 1$"),
        ({"epochs": 0}, "epochs 0 is not"),
        ({"steps": None}, "neither epochs nor steps"),
        ({"batch": "8"}, "batch '8' is not"),
        ({"checkpoint_every": 0}, "checkpoint_every 0 is not .* at least 1 or nothing"),
        ({"limits": {"segment_tokens": 9}}, "no field limits.query_tokens"),
        ({"limits": None}, "no field limits.segment_tokens"),
        ({"tokenizer": {"train": {}}}, "no field tokenizer.path"),
        ({"limits": 512}, "limits 512 is not a dict of segment_tokens, query_tokens"),
        ({"tokenizer": "bert"}, "tokenizer 'bert' is not a dict of path, train"),
        ({"splits": {"train": "train"}}, "no field splits.validation, splits.test"),
        ({"encoder": {"fn": "x", "document": {}}}, "no field encoder.segment"),
        ({"report": {"compare": ["runs/misspelt"]}}, "runs/misspelt: no run is there"),
        ({"temprature": 1.0}, "unknown fields temprature; the fields are seed"),
    ],
)
def test_values_that_mean_nothing_are_named(changes, message):
    with pytest.raises(UserError, match=message):
        fields.check(config() | changes)


def test_no_cap_means_all_segments_and_a_cap_of_none_is_refused():
    fields.check(config(**{"limits.training_segments": None}))
    with pytest.raises(UserError, match="training_segments 0 is not .* or nothing"):
        fields.check(config(**{"limits.training_segments": 0}))


def test_a_begun_run_continues_with_the_classes_it_found(tmp_path):
    head = {"fn": "docjax.encoders.pooling.Classifier", "classes": 0}
    asked = config()
    asked["encoder"]["head"] = dict(head)
    saved = json.loads(json.dumps(asked))
    saved["encoder"]["head"]["classes"] = 3
    (tmp_path / "config.json").write_text(json.dumps(saved))
    (tmp_path / "metrics.jsonl").write_text("")
    fields.check_same(asked, tmp_path)
    assert asked["encoder"]["head"] == head
    asked["encoder"]["head"]["classes"] = 4
    with pytest.raises(UserError, match="another config: encoder differ"):
        fields.check_same(asked, tmp_path)
