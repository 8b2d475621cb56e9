"""The lock of a file: `locked` refuses a second run of a directory, `awaited` waits.

The kernel locks the open file and releases the lock when the process ends, even by
kill -9. The text of the file `RUN/lock` only says who holds the lock: text that a dead
process left there blocks nobody.
"""

import contextlib
import datetime
import fcntl
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import jax

from docjax.errors import UserError
from docjax.storage.processes import wait

logger = logging.getLogger(__name__)

NAME = "lock"


@contextlib.contextmanager
def locked(run: Path) -> Iterator[None]:
    """Holds the lock of a run directory; makes a missing directory.

    In a run of several processes, process 0 holds the lock for all.

    Raises:
      UserError: if another process, or another thread of this one, holds the lock.
      OSError: if the directory or the file cannot be written.
    """
    with contextlib.ExitStack() as stack:
        if jax.process_index() == 0:
            try:
                taken = _take(run / NAME, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                text = (run / NAME).read_text(encoding="utf-8", errors="replace")
                holder = text.strip() or "a process that has not given its name yet"
                raise UserError(
                    f"--workdir {run}: another run is at work there ({holder}); wait for "
                    "its end, stop that process, or name another --workdir"
                ) from None
            file = stack.enter_context(taken)
            now = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
            file.truncate(0)
            file.write(
                f"host {socket.gethostname()}, process {os.getpid()}, since {now}\n"
            )
            file.flush()
        wait("workdir locked")
        yield


@contextlib.contextmanager
def awaited(path: Path) -> Iterator[None]:
    """Holds the lock of the file `path`; waits while another process holds it.

    Makes missing folders and the file. The holder may remove them. Raises OSError if
    the file cannot be written.
    """
    with _take(path, fcntl.LOCK_EX):
        yield


def _take(path: Path, kind: int) -> IO[str]:
    """The open file with its lock; tries again if its last holder has removed it."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as stack:
            # Opens without truncating: another process may hold the lock on this file.
            file = stack.enter_context(
                open(path, "a+", encoding="utf-8", errors="replace")
            )
            try:
                fcntl.flock(file, kind)
            except BlockingIOError:
                raise
            except OSError as error:  # some network file systems have no locks
                logger.warning("%s cannot be locked (%s)", path, error.strerror)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                stack.pop_all()
                return file
