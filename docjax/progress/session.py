"""What a command, or `docjax.train`, has around its work."""

import contextlib
from collections.abc import Iterator

from docjax.progress import bars, log, signals

_start = contextlib.ExitStack()  # while a command imports libraries


def begin() -> None:
    """For the first line of a program that is a command, before it imports libraries:
    from here on the log is docjax's, and Ctrl-C is one line."""
    signals.leave_at_once()
    log.install()
    _start.enter_context(bars.shown())
    _start.enter_context(bars.bar("docjax starts", ends=False))


@contextlib.contextmanager
def under_way() -> Iterator[None]:
    """Shows lines and bars in the block; SIGINT and SIGTERM raise `signals.Stopped`."""
    _start.close()
    with signals.stoppable(), log.shown(), bars.shown():
        yield
