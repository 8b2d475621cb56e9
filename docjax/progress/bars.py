"""How far a long stretch of work is.

    with bars.bar("encode", total=600, unit="document") as bar:
        bar.add(256)

On a terminal and in a notebook one line moves: that of the innermost stretch, behind the
names of those around it. Elsewhere a line of the log says the same each 30 seconds.
Nothing is shown outside of `shown`, and nothing of a stretch that is over in a second.
"""

import contextlib
import dataclasses
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, TextIO

from docjax.progress.one_bar import Bar, Count, duration

BRIEF = 1.0  # seconds for which nothing is shown of a stretch
MOVES = 0.5  # seconds between two moves of the line on a terminal
SAYS = 30.0  # seconds between two lines elsewhere
LONG = 5.0  # seconds of a stretch that deserves a line at its end

logger = logging.getLogger(__name__)


class _Screen:
    """The stretches of one thread, and the line that shows them."""

    def __init__(self) -> None:
        self.open: list[Bar] = []
        self.thread = threading.get_ident()
        self.moving = _moves()
        self.stream = sys.stderr
        self.streams = sys.stdout, sys.stderr
        if self.moving:
            sys.stdout, sys.stderr = (_Above(each, self) for each in self.streams)
        self.width = 0  # of the moving line that stands there
        self.said = time.monotonic()  # when the last line of the log came
        self.over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="bars", daemon=True)
        self._ticker.start()

    def close(self) -> None:
        self.over.set()
        with _lock:
            self.clear()
            if self.moving:
                sys.stdout, sys.stderr = self.streams

    def _tick(self) -> None:
        """Shows how far the work is, again and again."""
        while not self.over.wait(MOVES):
            with contextlib.suppress(OSError, ValueError):  # a closed standard error
                if self.moving:
                    self.draw()
                elif time.monotonic() - self.said >= SAYS:
                    self.said = time.monotonic()
                    if text := self.sentence():
                        logger.info("%s", text)

    def shown(self) -> tuple[str, Bar] | None:
        """The names of the stretches under way, and the innermost one."""
        stack = [bar for bar in list(self.open) if bar.seconds >= BRIEF]
        if not stack:
            return None
        last = stack.pop()
        done = last.done
        while stack and stack[-1].unit == last.unit != "":  # a part of it
            last = stack.pop()
            done += last.done
        names = dict.fromkeys([bar.name for bar in [*stack, last]])
        return ": ".join(names), dataclasses.replace(last, done=done)

    def draw(self) -> None:
        with _lock:
            found = self.shown()
            if self.over.is_set() or found is None:
                return self.clear()
            name, bar = found
            columns = _columns() - 1
            text = bar.line(name, columns)[:columns]
            self.stream.write("\r" + text.ljust(self.width))
            self.stream.flush()
            self.width = len(text)

    def clear(self) -> None:
        """Removes the moving line."""
        if self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()
            self.width = 0

    def sentence(self) -> str:
        """How far the work is, in a line of the log; empty if nothing is under way."""
        found = self.shown()
        return found[1].sentence(found[0]) if found else ""


class _Above:
    """A stream whose text stands above the moving line."""

    def __init__(self, stream: TextIO, screen: _Screen):
        self._stream, self._screen = stream, screen

    def write(self, text: str) -> int:
        with _lock:
            self._screen.clear()
            return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_screen: _Screen | None = None
_lock = threading.RLock()


@contextlib.contextmanager
def shown() -> Iterator[None]:
    """Shows the bars that this thread opens in the block."""
    global _screen
    before, _screen = _screen, _screen or _Screen()
    try:
        yield
    finally:
        mine, _screen = _screen, before
        if before is None and mine is not None:
            mine.close()


@contextlib.contextmanager
def of_this_thread() -> Iterator[None]:
    """Shows the bars that this thread opens in the block, in place of the other's."""
    screen = _screen
    if screen is None:
        yield
        return
    before, screen.thread = screen.thread, threading.get_ident()
    try:
        yield
    finally:
        screen.thread = before


@contextlib.contextmanager
def bar(
    name: str,
    total: Count | None = None,
    unit: str = "",
    done: Count = 0,
    ends: bool = True,
) -> Iterator[Bar]:
    """A stretch of work with `total` units, `done` of which are done before.

    A stretch inside of a stretch of the same unit is a part of it: what it has counted
    is dropped at its end, and the caller counts it for the whole.

    ends: whether a line of the log says how long it took, if it was long or has a note,
      and unless such a stretch is around it.
    """
    mine, screen = Bar(name, total, unit, done, ends=ends, first=done), _screen
    if screen is None or screen.thread != threading.get_ident():
        yield mine
        return
    screen.open.append(mine)
    try:
        yield mine
    except BaseException:
        _remove(screen, mine)
        raise
    _remove(screen, mine)
    around = any(each.ends for each in screen.open)
    if ends and not around and (mine.note or mine.seconds >= LONG):
        counted = mine.counts if mine.done > mine.first else ""
        took = f"{counted} in " if counted else ""
        note = f", {mine.note}" if mine.note else ""
        logger.info("%s: %s%s%s", name, took, duration(mine.seconds), note)


def _remove(screen: _Screen, mine: Bar) -> None:
    with _lock:
        if mine in screen.open:
            screen.open.remove(mine)
        if not screen.open:
            screen.clear()


def make_room() -> None:
    """Removes the moving line, because a line of the log comes."""
    with _lock:
        if _screen is not None:
            _screen.clear()
            _screen.said = time.monotonic()


def _moves() -> bool:
    """Whether standard error is a terminal or a cell of a notebook."""
    stream = sys.stderr
    notebook = type(stream).__module__.startswith("ipykernel")
    return notebook or (stream is not None and stream.isatty())


def _columns() -> int:
    with contextlib.suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    return shutil.get_terminal_size().columns
