"""What a run keeps: which rules fit which run."""

import json

import numpy as np
import pytest

import docjax
from docjax import keep
from docjax.errors import UserError
from docjax.keep import Best, Judged, Last
from docjax.run import fields
from docjax.run.check_parts import check_parts
from docjax.run.prepare import prepare


def resolved(name: str, keep: dict, **changes) -> fields.RunConfig:
    config = docjax.config.load(name, variant="smoke")
    config.keep = keep
    config.update_from_flattened_dict(changes)
    return fields.resolve(config)


@pytest.mark.parametrize("name, what", [("retriever", "examples"), ("deca", "words")])
def test_what_cannot_be_judged_is_refused_before_documents_are_read(name, what):
    config = resolved(name, dict(fn="docjax.keep.Judged"))
    with pytest.raises(UserError, match=f"docjax.keep.Judged .* but {what}") as error:
        check_parts(config)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "metric, line",
    [
        ("speed/seconds", "is not a metric of a task"),
        ("clustering/nmi", "needs validation documents"),
    ],
)
def test_a_metric_that_cannot_choose_is_refused(metric, line):
    with pytest.raises(UserError, match=f"keep.metric '{metric}' {line}"):
        resolved("graph_roberta", dict(fn="docjax.keep.Best", metric=metric))


def test_the_best_step_needs_a_metric():
    with pytest.raises(UserError, match="docjax.keep.Best needs metric"):
        resolved("graph_roberta", dict(fn="docjax.keep.Best"))


def test_a_config_without_keep_keeps_the_last_step():
    config = docjax.config.load("graph_roberta", variant="smoke").to_dict()
    del config["keep"]
    assert fields.resolve(config).keep.built == Last()


def test_the_judged_run_alone_holds_documents_out():
    rows = np.arange(1000)
    assert not len(Last().held_out(rows, 0)) and not len(Best("a/b").held_out(rows, 0))
    held = Judged().held_out(rows, 0)
    assert len(held) == 100 and set(held) <= set(rows)
    assert not len(Judged().held_out(rows[:149], 0))
    assert (held != Judged().held_out(rows, 1)).any()


def test_too_few_documents_to_judge_are_told_as_the_run_is_prepared(tmp_path, caplog):
    keep._warn_of_few.cache_clear()  # another test may have heard it
    config = docjax.config.load("graph_roberta", variant="smoke")
    config.keep = dict(fn="docjax.keep.Judged")
    texts = [f"Rivers carry stone {i}. Rockets leave orbit {i}." for i in range(40)]
    lines = [json.dumps({"id": str(i), "text": text}) for i, text in enumerate(texts)]
    (tmp_path / "few.jsonl").write_text("\n".join(lines))
    path = str(tmp_path / "few.jsonl")
    config.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=path)
    prepare(config, tmp_path / "run")
    [line] = [each for each in caplog.messages if "cannot judge by" in each]
    assert "(at least 150): the run keeps its start" in line
    assert "--config.keep.fn=docjax.keep.Last" in line
