"""Ctrl-C and SIGTERM, as real signals to real processes."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from docjax.progress import signals
from docjax.progress.signals import Stopped, stoppable

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def switched_on():
    """Where the tests run in the background of a script, SIGINT is switched off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("number", "code"), signals.CODES.items())
def test_a_signal_raises_and_handlers_are_as_before(number, code):
    handlers = [signal.getsignal(each) for each in signals.CODES], sys.unraisablehook
    said = "the same command goes on"
    with pytest.raises(Stopped, match=said) as stopped, stoppable():
        signal.raise_signal(number)
    assert stopped.value.code == code
    now = [signal.getsignal(each) for each in signals.CODES], sys.unraisablehook
    assert now == handlers


def test_no_library_keeps_the_signal_as_an_exception():
    as_libraries_do = contextlib.suppress(Exception)
    with pytest.raises(Stopped), stoppable(), as_libraries_do:
        signal.raise_signal(signal.SIGINT)


def test_a_signal_while_garbage_is_collected_is_not_lost(capsys):
    class Garbage:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Stopped), stoppable():
        Garbage()
        time.sleep(5)
    assert capsys.readouterr().err == ""


def test_a_deferred_signal_waits_until_it_is_taken(capfd):
    with pytest.raises(Stopped), stoppable():
        signals.defer()
        for _ in range(2):  # a launcher has passed it on, too
            signal.raise_signal(signal.SIGINT)
        assert signals.came()
        signals.take()
    said = "stopping after this step; Ctrl-C once more ends at once\n"
    assert capfd.readouterr().err == said
    with stoppable():
        assert not signals.came()
        signals.take()


def test_a_signal_that_is_switched_off_stays_so():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stoppable():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.raise_signal(signal.SIGINT)


def test_another_thread_leaves_signals_alone():
    before = signal.getsignal(signal.SIGTERM)
    found = []

    def work():
        with stoppable():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]


def start(*command: str, **options) -> subprocess.Popen:
    return subprocess.Popen(
        ["env", "--default-signal=SIGINT", sys.executable, *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


SAVING = """
import time
from docjax.progress import session, signals
session.begin()
with session.under_way():
    signals.defer()
    print("saving", flush=True)
    time.sleep(60)
"""


def test_a_second_ctrl_c_ends_at_once():
    with start("-c", SAVING) as process:
        assert process.stdout.readline() == "saving\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline().startswith("stopping after this step")
        process.send_signal(signal.SIGINT)  # at once: the same Ctrl-C
        time.sleep(signals.SAME + 0.2)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)  # it is stopping already
        for _ in range(20):  # Python can sleep through a signal right behind another
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                time.sleep(0.5)
        assert process.wait(5) == 130
        assert process.stderr.read() == f"stopped: {signals.GOES_ON}\n"


ENDING = """
import os, signal, sys
from docjax.progress import session
session.begin()
class Last:
    def __del__(self, kill=os.kill, own=os.getpid()):
        kill(own, 2)
sys.last = Last()  # goes when Python ends
with session.under_way():
    print("done")
"""


def test_ctrl_c_does_nothing_when_all_is_done():
    with start("-c", ENDING) as process:
        assert process.communicate(timeout=30) == ("done\n", "")
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("docjax.main", ["--config=graph_roberta:smoke"]),
        ("docjax", ["encode", "nothing", "nothing", "--output", "nothing"]),
    ],
)
@pytest.mark.parametrize("seconds", [0.15, 0.6])
def test_ctrl_c_in_the_first_second_is_one_line(module, arguments, seconds, tmp_path):
    """While Python imports JAX, which takes longer."""
    path = {"PYTHONPATH": str(ROOT)}
    begins = "import sys, runpy, docjax.progress.session as s; begin = s.begin\n"
    begins += "s.begin = lambda: (begin(), print('begun', flush=True))\n"
    begins += f"sys.argv[0] = '{module}'\n"
    begins += f"runpy.run_module('{module}', run_name='__main__')"
    command = ["-c", begins, *arguments]
    with start(*command, env=os.environ | path) as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(seconds if module == "docjax.main" else 0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    prefix = "" if module == "docjax.main" else "docjax: "
    assert process.returncode == 130, err
    assert err.removeprefix(prefix) == f"stopped: {signals.GOES_ON}\n" and not out
