"""Files appear whole or not at all: after errors, kills, and beside other writers."""

import errno
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from docjax.storage import atomic

ROOT = Path(__file__).resolve().parents[2]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_text_is_written_as_utf8_and_nothing_else_is_left(tmp_path):
    atomic.write_text(tmp_path / "a.json", "Größe\n")
    assert (tmp_path / "a.json").read_bytes() == b"Gr\xc3\xb6\xc3\x9fe\n"
    assert names(tmp_path) == {"a.json"}


def test_bytes_replace_what_was_there(tmp_path):
    (tmp_path / "a").write_bytes(b"old contents")
    atomic.write_bytes(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_the_old_contents_stay_until_the_block_ends(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with atomic.partial(path) as beside:
        beside.write_text("new")
        assert path.read_text() == "old" and beside.parent == path.parent
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_the_old_contents_stay_and_the_partial_file_is_gone(
    tmp_path, error
):
    (tmp_path / "a").write_text("old")
    with pytest.raises(error), atomic.partial(tmp_path / "a") as beside:
        beside.write_text("half")
        raise error
    assert names(tmp_path) == {"a"} and (tmp_path / "a").read_text() == "old"


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_disk_that_fills_at_the_last_step_leaves_the_old_contents(
    tmp_path, monkeypatch, name
):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(os, name, full)
    with pytest.raises(OSError, match="No space left"):
        atomic.write_text(tmp_path / "a", "new")
    assert names(tmp_path) == {"a"} and (tmp_path / "a").read_text() == "old"


def test_links_stay_links_and_pipes_stay_pipes(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    atomic.write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and names(tmp_path) == {"a", "link"}
    assert (tmp_path / "a").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((tmp_path / "pipe").read_text)
        atomic.write_text(tmp_path / "pipe", "through")
        assert read.result() == "through"
    assert (tmp_path / "pipe").is_fifo()


def test_contents_are_synced_before_they_get_their_name(tmp_path, monkeypatch):
    path, synced = tmp_path / "a", []

    def fsync(number: int) -> None:
        assert not path.exists()
        synced.append(os.fstat(number).st_ino)

    monkeypatch.setattr(os, "fsync", fsync)
    atomic.write_text(path, "new")
    assert synced == [path.stat().st_ino]


def test_all_files_of_a_folder_are_synced_before_it_gets_its_name(
    tmp_path, monkeypatch
):
    synced = set()
    monkeypatch.setattr(os, "fsync", lambda n: synced.add(os.fstat(n).st_ino))
    (tmp_path / "new" / "deep").mkdir(parents=True)
    files = [tmp_path / "new" / "a", tmp_path / "new" / "deep" / "b"]
    for path in files:
        path.write_text(path.name)
    numbers = {path.stat().st_ino for path in files}
    atomic.rename(tmp_path / "new", tmp_path / "made")
    assert synced == numbers and names(tmp_path) == {"made"}


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "a"
    with atomic.partial(path, "one") as one, atomic.partial(path, "two") as two:
        one.write_text("1" * 10)
        two.write_text("2" * 10)
    assert path.read_text() == "1" * 10 and names(tmp_path) == {"a"}


def test_kill_9_at_any_time_leaves_one_whole_version(tmp_path):
    path = tmp_path / "a"
    code = (
        "import pathlib, sys\n"
        "from docjax.storage import atomic\n"
        "for number in range(10 ** 6):\n"
        "    text = str(number % 10) * 200_000\n"
        "    atomic.write_text(pathlib.Path(sys.argv[1]), text)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for delay in (0.0, 0.003, 0.01, 0.017):
        path.unlink(missing_ok=True)
        with subprocess.Popen(
            [sys.executable, "-c", code, str(path)], env=environment
        ) as process:
            while not path.exists():
                assert process.poll() is None
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
        text = path.read_text()
        assert len(text) == 200_000 and len(set(text)) == 1
    atomic.write_text(path, "new")  # over what the last kill has left
    assert names(tmp_path) == {"a"}
