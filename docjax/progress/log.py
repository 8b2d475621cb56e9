"""The log: docjax's own lines, and what other libraries warn of.

Each module logs with `logging.getLogger(__name__)`. Here is what prints these lines.
"""

import contextlib
import logging
import sys
from collections.abc import Iterator

from docjax.progress import bars
from docjax.storage import disk_errors


class Plain(logging.Handler):
    """Writes the text of a record to standard error, and before it what kind of record
    it is if that is more than a piece of information."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            bars.make_room()
            kind = f"{record.levelname.lower()}: " if record.levelno > 20 else ""
            print(kind + record.getMessage(), file=sys.stderr, flush=True)
        except OSError:  # standard error may lie on a full disk
            pass
        except Exception:  # noqa: BLE001 a record of another library may be anything
            self.handleError(record)


class _Clears(logging.Handler):
    """Makes room on the terminal for the line that a handler of the program writes."""

    def emit(self, record: logging.LogRecord) -> None:
        bars.make_room()


def _is_shown(record: logging.LogRecord) -> bool:
    """Whether a line is docjax's own or a warning; not the errors of a full disk, which
    a run reports itself."""
    if record.exc_info and disk_errors.cause(record.exc_info[1]):
        return False
    own = record.name.partition(".")[0] == "docjax"
    return own or record.levelno >= logging.WARNING


def install() -> None:
    """Prints the lines of the log to standard error, unless this program has set up
    Python's logging itself: its handlers get docjax's lines then.

    The level is the one that the program has set for the logger "docjax", or INFO.
    """
    own = logging.getLogger("docjax")
    own.setLevel(own.level or logging.INFO)
    if logging.root.handlers:
        own.addHandler(_Clears())
    else:
        plain = Plain()
        plain.addFilter(_is_shown)
        logging.root.addHandler(plain)


@contextlib.contextmanager
def shown() -> Iterator[None]:
    """As `install` while the block runs; afterwards logging is as it was."""
    own, root = logging.getLogger("docjax"), logging.root
    level, handlers = own.level, [list(own.handlers), list(root.handlers)]
    install()
    try:
        yield
    finally:
        own.setLevel(level)
        # Orbax and Grain add one to the root when they log.
        own.handlers[:], root.handlers[:] = handlers
