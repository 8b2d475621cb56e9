"""Every benchmark runs at its smallest sizes, so that no change breaks one unseen."""

import importlib
import os
import re
from pathlib import Path

import pytest
import threadpoolctl

from docjax.run import report

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
TEXTS = {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.py"))}
SCRIPTS = [name for name, text in TEXTS.items() if 'if __name__ == "__main__"' in text]

pytestmark = pytest.mark.usefixtures("one_device")


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Reports have no figures, and libraries one thread."""
    with pytest.MonkeyPatch.context() as patch, threadpoolctl.threadpool_limits(1):
        patch.setattr(report, "_or_none", lambda *_: None)
        yield


@pytest.fixture(autouse=True)
def cores():
    """The process may use its cores again."""
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


def flags(name: str, request) -> list[str]:
    """What a benchmark needs beside the made data; skips it where that is missing."""
    if name == "analyses":
        return ["--lexicons", request.getfixturevalue("nltk_data")]
    return []


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_runs_at_its_smallest_sizes(name, request, capsys):
    main = importlib.import_module(f"benchmarks.{name}").main
    assert not main(["--tiny", *flags(name, request)])
    assert capsys.readouterr().out


def test_every_module_that_is_no_benchmark_is_read_by_one():
    parts = {name for name in TEXTS if name not in SCRIPTS}
    text = "\n".join(TEXTS.values())
    unread = {
        name
        for name in parts
        if not re.search(rf"from benchmarks(\.{name} | .*\b{name}\b)", text)
    }
    assert len(SCRIPTS) > 20 and not unread
