"""metrics.jsonl: lines, resumes, torn ends."""

import json

import pytest

from docjax.run.metrics import Metrics, last_metrics, read, shown


def write(run, step: int, steps: int, *lines) -> None:
    log = Metrics(run, step, steps)
    for number, metrics in lines:
        log.write(number, metrics)
    log.close()


def test_lines_are_json_with_the_step_first(tmp_path):
    write(tmp_path, 0, 10, (1, {"train/loss": 0.5}), (2, {"train/loss": 0.25}))
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert lines == [
        '{"step": 1, "train/loss": 0.5}',
        '{"step": 2, "train/loss": 0.25}',
    ]
    assert last_metrics(tmp_path) == {"step": 2, "train/loss": 0.25}


def test_the_log_has_scores_and_the_bar_the_loss(tmp_path, caplog):
    step = {"train/loss": 0.51234, "time/documents_per_s": 1234.5, "train/other": 1.0}
    scores = {"eval/a/x": 0.5, "eval/a/y": 1.0, "eval/b/x@10": 0.25}
    with caplog.at_level("INFO", "docjax"):
        write(tmp_path, 0, 10, (1, step), (1, scores))
    assert caplog.messages == ["step 1 of 10, a: x 0.500, y 1.000; b: x@10 0.250"]
    assert shown(step) == "loss 0.5123, 1,234 documents/s"


def test_event_files_have_the_metrics_by_step(tmp_path):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    )
    log = Metrics(tmp_path, 0, 10, tensorboard=True)
    log.write(1, {"train/loss": 0.5, "time/step_s": 2})
    log.write(2, {"train/loss": 0.25})
    log.close()
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert events.Tags()["scalars"] == ["train/loss", "time/step_s"]
    found = [(event.step, event.value) for event in events.Scalars("train/loss")]
    assert found == [(1, 0.5), (2, 0.25)]


def test_a_resume_drops_the_lines_after_its_checkpoint(tmp_path):
    write(tmp_path, 0, 9, *((step, {"train/loss": 1.0}) for step in range(1, 6)))
    write(tmp_path, 3, 9, (4, {"train/loss": 2.0}))
    assert [line["step"] for line in read(tmp_path)] == [1, 2, 3, 4]
    assert last_metrics(tmp_path)["train/loss"] == 2.0


def test_a_resume_keeps_the_evaluation_of_its_checkpoint(tmp_path):
    write(
        tmp_path,
        0,
        9,
        (0, {"eval/a/x": 0.1}),
        (3, {"train/loss": 1.0}),
        (3, {"eval/a/x": 1.0}),
    )
    write(tmp_path, 3, 9)
    assert [line["step"] for line in read(tmp_path)] == [0, 3, 3]


def test_a_complete_run_run_again_evaluates_again(tmp_path):
    write(tmp_path, 0, 3, (3, {"train/loss": 1.0}), (3, {"eval/a/x": 1.0}))
    write(tmp_path, 3, 3, (3, {"eval/a/x": 1.0}))
    assert read(tmp_path) == [
        {"step": 3, "train/loss": 1.0},
        {"step": 3, "eval/a/x": 1.0},
    ]


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_torn_last_line_is_left_out(tmp_path, cut):
    """Killed while writing, at any byte."""
    write(tmp_path, 0, 9, (1, {"train/loss": 0.5}), (2, {"train/loss": 0.25}))
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    whole = [1, 2] if cut == 1 else [1]  # without its end of line it is whole
    assert [line["step"] for line in read(tmp_path)] == whole
    write(tmp_path, 1, 9, (2, {"train/loss": 0.125}))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["train/loss"] for line in lines] == [0.5, 0.125]


def test_a_damaged_line_in_the_middle_is_not_passed_over(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    with pytest.raises(ValueError):
        read(tmp_path)


def test_a_run_without_metrics_has_no_lines(tmp_path):
    assert read(tmp_path) == []
