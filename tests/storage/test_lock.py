"""The lock of a file: who holds it, who waits, and that a dead process holds nothing."""

import errno
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from docjax.errors import UserError
from docjax.storage import lock
from docjax.storage.lock import NAME, awaited, locked

ROOT = Path(__file__).resolve().parents[2]
HOLD = (
    "import pathlib, sys\n"
    "from docjax.storage.lock import locked\n"
    "with locked(pathlib.Path(sys.argv[1])):\n"
    "    print('held', flush=True)\n"
    "    sys.stdin.read()\n"
)


@pytest.fixture
def holder(tmp_path) -> Iterator[subprocess.Popen]:
    """Another process, which holds the lock of `tmp_path / "run"`."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run")],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_process_is_told_who_holds_the_lock_and_what_to_do(holder, tmp_path):
    with pytest.raises(UserError) as error, locked(tmp_path / "run"):
        pass
    line = str(error.value)
    assert "\n" not in line and f"--workdir {tmp_path / 'run'}" in line
    assert f"host {socket.gethostname()}, process {holder.pid}, since 20" in line
    assert "stop that process, or name another --workdir" in line
    # The refused process has changed nothing.
    assert f"process {holder.pid}" in (tmp_path / "run" / NAME).read_text()


def test_kill_9_releases_the_lock_and_the_text_left_behind_is_no_obstacle(
    holder, tmp_path
):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    path = tmp_path / "run" / NAME
    assert f"process {holder.pid}" in path.read_text()
    with locked(tmp_path / "run"):
        assert f"process {os.getpid()}" in path.read_text()
        assert f"process {holder.pid}" not in path.read_text()
        assert len(path.read_text().splitlines()) == 1


def test_the_end_releases_the_lock(holder, tmp_path):
    holder.communicate("")
    assert holder.returncode == 0
    with locked(tmp_path / "run"):
        pass
    with locked(tmp_path / "run"):
        pass


def test_an_error_releases_the_lock(tmp_path):
    with pytest.raises(KeyError), locked(tmp_path / "run"):
        raise KeyError
    code = HOLD.replace("sys.stdin.read()", "pass")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run")],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0


def test_a_text_that_nobody_wrote_is_overwritten(tmp_path):
    (tmp_path / NAME).write_bytes(b"\xff\xfe no text\n" * 9)
    with locked(tmp_path):
        assert re.fullmatch(
            r"host \S+, process \d+, since \S+ \S+\n", (tmp_path / NAME).read_text()
        )


def test_of_several_processes_the_first_holds_the_lock_and_the_others_wait(
    tmp_path, monkeypatch
):
    waited = []
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    monkeypatch.setattr(lock, "wait", waited.append)
    with locked(tmp_path / "run"):
        assert waited == ["workdir locked"]
    assert not (tmp_path / "run").exists()


def test_a_second_run_of_the_same_process_is_refused(tmp_path):
    """Two threads of a notebook; the refusal must not release the lock, either."""
    with locked(tmp_path):
        for _ in range(2):
            with (
                pytest.raises(UserError, match="another run is at work"),
                locked(tmp_path),
            ):
                pass


def test_a_second_holder_of_a_file_waits_for_the_first(tmp_path):
    path, order, begun = tmp_path / "new" / "file.lock", [], threading.Event()

    def second() -> None:
        begun.set()
        with awaited(path):
            order.append("second")

    thread = threading.Thread(target=second)
    with awaited(path):
        thread.start()
        begun.wait()
        thread.join(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_file_system_without_locks_is_told_of_and_used(tmp_path, monkeypatch, caplog):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock.fcntl, "flock", no_locks)
    with awaited(tmp_path / "file.lock"), locked(tmp_path / "run"):
        assert f"process {os.getpid()}" in (tmp_path / "run" / NAME).read_text()
    assert caplog.text.count("cannot be locked (No locks available)") == 2
