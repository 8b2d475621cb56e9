"""metrics.jsonl: one JSON object per line, with `step` and flat metric names."""

import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path

import jax

from docjax.errors import UserError
from docjax.storage import atomic

logger = logging.getLogger(__name__)


class Metrics:
    """Writes a run's metrics, and scores to the log.

    A resumed run writes some lines again, so their first copies are dropped: all lines
    after `step`, and the last evaluation of a complete run.
    """

    def __init__(self, run: Path, step: int, steps: int, tensorboard: bool = False):
        self._path, self._steps = run / "metrics.jsonl", steps
        self._first = jax.process_index() == 0
        if self._first:
            done = step == steps
            kept = [
                line
                for line in read(run)
                if 0 < step > line["step"]
                or (0 < step == line["step"] and ("train/loss" in line or not done))
            ]
            text = "".join(json.dumps(line) + "\n" for line in kept)
            atomic.write_text(self._path, text)
        self._events = _events(run) if tensorboard and self._first else None

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Adds one line."""
        if not self._first:
            return
        line = {"step": step} | {name: float(metrics[name]) for name in metrics}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if "train/loss" not in line and (text := shown(line)):
            logger.info("step %d of %d, %s", step, self._steps, text)
        if self._events:
            _add_event(self._events, step, metrics)

    def close(self) -> None:
        if self._events:
            self._events.close()


def read(run: Path) -> list[dict[str, int | float]]:
    """The lines of a run's metrics.jsonl; a torn last line is left out."""
    path = run / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    records = []
    for number, line in enumerate(lines):
        try:
            records.append(json.loads(line))
        except ValueError:
            if number + 1 < len(lines):
                raise
    return records


def last_metrics(run: Path) -> dict[str, int | float]:
    """The last line of a run's metrics.jsonl; empty before the first line."""
    return (read(run) or [{}])[-1]


def shown(line: Mapping[str, float | int]) -> str:
    """Of a line the loss, the speed and the scores of each task, for a user's eyes."""
    parts, tasks = [], {}
    if "train/loss" in line:
        parts.append(f"loss {line['train/loss']:.4g}")
    if "time/documents_per_s" in line:
        parts.append(f"{line['time/documents_per_s']:,.0f} documents/s")
    for name, value in line.items():
        if name.startswith(("eval/", "validation/")):
            _, task, metric = name.split("/", 2)
            tasks.setdefault(task, []).append(f"{metric} {value:.3f}")
    scores = "; ".join(f"{task}: {', '.join(each)}" for task, each in tasks.items())
    return ", ".join(filter(None, [*parts, scores]))


def _events(run: Path):
    try:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        raise UserError(
            "--config.tensorboard needs tensorboard: pip install tensorboard"
        ) from None
    return EventFileWriter(str(run / "tensorboard"))


def _add_event(writer, step: int, metrics: Mapping[str, float]) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    values = [Summary.Value(tag=n, simple_value=float(metrics[n])) for n in metrics]
    summary = Summary(value=values)
    writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))
