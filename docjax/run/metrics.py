"""metrics.jsonl: one JSON object per line, with `step` and flat metric names."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import jax
from tqdm import tqdm

from docjax.errors import UserError
from docjax.storage import atomic


class Metrics:
    """Writes a run's metrics; shows a bar on a terminal, lines elsewhere.

    A resumed run writes some lines again, so their first copies are dropped: all lines
    after `step`, and the last evaluation of a complete run.
    """

    def __init__(self, run: Path, step: int, steps: int, tensorboard: bool = False):
        self._path = run / "metrics.jsonl"
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
        self._bar = tqdm(
            total=steps,
            initial=step,
            disable=not (self._first and sys.stderr.isatty()),
            unit="step",
        )
        self._events = _events(run) if tensorboard and self._first else None

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Adds one line."""
        if not self._first:
            return
        line = {"step": step} | {name: float(metrics[name]) for name in metrics}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        shown = ", ".join(f"{k} {v:.4g}" for k, v in line.items() if _shown(k))
        if self._bar.disable:
            print(
                f"step {step}/{self._bar.total}: {shown}", file=sys.stderr, flush=True
            )
        else:
            self._bar.set_postfix_str(shown)
        if self._events:
            _add_event(self._events, step, metrics)

    def tick(self, step: int) -> None:
        """Moves the bar to `step`."""
        self._bar.update(step - self._bar.n)

    def close(self) -> None:
        self._bar.close()
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


def _shown(name: str) -> bool:
    return name in ("train/loss", "time/documents_per_s") or name.startswith(
        ("eval/", "validation/")
    )


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
