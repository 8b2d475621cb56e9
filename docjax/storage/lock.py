"""The lock of a run directory: one run at a time writes there.

The kernel locks the open file and releases the lock when the process ends, even by
kill -9. The text of the file `RUN/lock` only says who holds the lock: text that a dead
process left there blocks nobody.
"""

import contextlib
import datetime
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import jax
from absl import logging

from docjax.errors import UserError
from docjax.storage.processes import wait

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
            stack.enter_context(_take(run))
        wait("workdir locked")
        yield


def _take(run: Path) -> IO[str]:
    """The locked file, with this process's name in it."""
    run.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        # Opens without truncating: another process may hold the lock on this file.
        file = stack.enter_context(
            open(run / NAME, "a+", encoding="utf-8", errors="replace")
        )
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(_refusal(run, file)) from None
        except OSError as error:  # some network file systems have no locks
            logging.warning("%s cannot be locked (%s)", run, error.strerror)
        file.truncate(0)
        now = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
        file.write(f"host {socket.gethostname()}, process {os.getpid()}, since {now}\n")
        file.flush()
        stack.pop_all()
        return file


def _refusal(run: Path, file: IO[str]) -> str:
    file.seek(0)
    holder = file.read().strip() or "a process that has not given its name yet"
    return (
        f"--workdir {run}: another run is at work there ({holder}); wait for its end, "
        "stop that process, or name another --workdir"
    )
