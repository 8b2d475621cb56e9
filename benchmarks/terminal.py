"""What a command shows on a terminal: its lines, and its longest silence.

  python -m benchmarks.terminal [--lines 30] [--silence 10] COMMAND ...
  python -m benchmarks.terminal python -m docjax.main --config=graph_roberta:demo

Runs the command on a pseudo-terminal of 100 columns and shows what it prints, each line
behind its second. A bar that moves is no line, but it ends a silence. The last line is
JSON. The exit code is 1 if a bar is not held or the command fails.
"""

import argparse
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks import tiny

COLUMNS = 100


class Shown(NamedTuple):
    """What a command showed."""

    code: int
    lines: list[tuple[float, str]]  # when the line ended, in seconds; what it said
    silences: list[tuple[float, float]]  # when a silence began, how long it lasted

    @property
    def silence(self) -> float:
        """The longest silence in seconds."""
        return max(seconds for _, seconds in self.silences)


def watch(
    command: Sequence[str],
    *,
    said: Callable[[str, subprocess.Popen], None] = lambda text, process: None,
    **options,
) -> Shown:
    """Runs a command on a terminal until it ends.

    `said(text, process)` is called with all that was shown so far, and may send a
    signal; `options` go to `subprocess.Popen`.
    """
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    began = last = time.monotonic()
    text, silences, ends = "", [], []
    process = subprocess.Popen(
        command, stdin=its, stdout=its, stderr=its, start_new_session=True, **options
    )
    os.close(its)
    while chunk := _read(ours):
        now = time.monotonic()
        silences.append((last - began, now - last))
        last = now
        text += chunk.decode(errors="replace")
        ends += [now - began] * chunk.count(b"\n")
        said(text, process)
    os.close(ours)
    code = process.wait()
    silences.append((last - began, time.monotonic() - last))
    lines = [_visible(line) for line in text.split("\n")[:-1]]
    return Shown(code, list(zip(ends, lines, strict=True)), silences)


def _read(terminal: int) -> bytes:
    """What the terminal got; empty when the command has ended."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux says the end so
        return b""


def _visible(line: str) -> str:
    """What stands there after carriage returns and erasures."""
    shown = ""
    for part in line.rstrip("\r").split("\r"):
        part = part.replace("\x1b[K", " " * len(shown))
        shown = part + shown[len(part) :]
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", shown).rstrip()


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=30)
    parser.add_argument("--silence", type=float, default=10.0, help="seconds")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    flags = tiny.parse(parser, given)
    if flags.tiny:
        flags.command = [sys.executable, "-m", "docjax", "--version"]
    shown = watch(flags.command)
    for second, line in shown.lines:
        print(f"{second:7.1f}  {line}")
    when, silence = max(shown.silences, key=lambda pair: pair[1])
    facts = {"code": shown.code, "lines": len(shown.lines)}
    facts |= {"silence_s": round(silence, 1), "from_s": round(when, 1)}
    print(json.dumps(facts))
    held = len(shown.lines) <= flags.lines and silence <= flags.silence
    return int(not held or shown.code != 0)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
