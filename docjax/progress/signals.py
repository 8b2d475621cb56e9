"""Ctrl-C and SIGTERM end a run: what is done is saved, and one line says so.

Every command is stoppable from its first to its last second. A signal raises `Stopped`
in the main thread, or waits for the end of a step (`deferred`), which is then saved. A
second Ctrl-C ends the process at once: files are whole, because they appear whole.
"""

import _thread
import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

CODES = {signal.SIGINT: 130, signal.SIGTERM: 75}
SAME = 1.0  # seconds within which signals are one: launchers pass them on
GOES_ON = "the same command goes on with what is saved"


class Stopped(KeyboardInterrupt):
    """SIGINT or SIGTERM came; everything is saved and the same command goes on.

    A KeyboardInterrupt, so that no `except Exception` of a library keeps it.
    """

    def __init__(self, message: str, code: int | None = None):
        super().__init__(message)
        self.code = code or CODES.get(_state.came, CODES[signal.SIGTERM])


class _State:
    """What this process knows of signals."""

    came = 0  # the signal that asks to stop
    at = 0.0  # when it came
    lost = False  # it was raised where Python raises nothing
    waits = False  # for the end of a step


_state = _State()


def leave_at_once() -> None:
    """Until `stoppable` begins, a signal ends the process: there is nothing to save.

    For a command's first second, in which Python imports its libraries, and its last.
    While Python itself ends, all is done and Ctrl-C does nothing.
    """
    if threading.current_thread() is threading.main_thread():
        for number in _ours():
            signal.signal(number, _leave)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """While the block runs in the main thread, the first signal raises `Stopped`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _handle) for number in _ours()}
    hook, sys.unraisablehook = sys.unraisablehook, _unraisable
    _state.came, _state.lost, _state.waits = 0, False, False
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def defer() -> None:
    """From now on a signal waits until somebody asks whether it `came`."""
    _state.waits = True


def take() -> None:
    """From now on a signal raises `Stopped`, and one that has waited does so now."""
    waited, _state.waits = _state.waits and _state.came, False
    if waited:
        raise Stopped(f"stopped: {GOES_ON}")


def came() -> bool:
    """Whether a signal asks to stop."""
    return bool(_state.came)


def _ours() -> list[int]:
    """The signals to handle: not those that the parent process has switched off, such
    as SIGINT in a script's background, and not those of C code."""
    handlers = {number: signal.getsignal(number) for number in CODES}
    return [n for n, h in handlers.items() if h not in (signal.SIG_IGN, None)]


def _handle(number: int, _frame: Any) -> None:
    if _state.came and not _state.lost:
        if number == signal.SIGINT and time.monotonic() - _state.at > SAME:
            _leave(number)
        return
    if not _state.lost:
        _state.came, _state.at = number, time.monotonic()
    _state.lost = False
    if _state.waits:
        _say("stopping after this step; Ctrl-C once more ends at once")
    else:
        raise Stopped(f"stopped: {GOES_ON}")


def _leave(number: int, _frame: Any = None) -> None:
    """Ends the process, with the exit code of the signal."""
    _say(f"stopped: {GOES_ON}")
    os._exit(CODES[number])


def _say(line: str) -> None:
    """Writes a line, as a signal may: another write may be half done."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if sys.stderr.isatty():
            line = f"\r\x1b[K{line}"
        os.write(sys.stderr.fileno(), f"{line}\n".encode())


def _unraisable(unraisable: Any) -> None:
    """Raises `Stopped` again that came while Python collected garbage, and is silent of
    arrays that TensorStore could not save: the run reports the full disk."""
    if isinstance(unraisable.exc_value, Stopped):
        _state.lost = True
        threading.Timer(0.01, _thread.interrupt_main, [_state.came]).start()
    elif str(unraisable.exc_value) != "Event loop is closed":
        sys.__unraisablehook__(unraisable)
