"""What a user sees: on a terminal a line that moves, elsewhere lines."""

import subprocess
import sys
import threading

import pytest

from benchmarks.terminal import watch
from docjax.progress import bars

WORK = """
import sys, time, warnings
from docjax.progress import bars, session
bars.SAYS = float(sys.argv[1])
session.begin()
with session.under_way():
    with bars.bar("outer"), bars.bar("encode", 600, "document") as bar:
        bar.add(200)
        time.sleep(1.2)
        print('{"an": "answer"}', flush=True)
        time.sleep(1.3)
        bar.add(400)
    with bars.bar("long") as bar:
        bar.began -= 65
        bar.note = "loss 0.5"
"""


def test_on_a_terminal_a_line_moves_below_what_is_printed():
    seen = []
    shown = watch(
        [sys.executable, "-c", WORK, "30"], said=lambda text, _: seen.append(text)
    )
    assert [line for _, line in shown.lines] == [
        '{"an": "answer"}',
        "long: 1 min 5 s, loss 0.5",
    ]
    assert shown.code == 0 and "outer: encode:  33%|" in seen[-1]
    assert "| 200/600 documents [00:02<00:0" in seen[-1]


def test_elsewhere_lines_say_how_far_the_work_is():
    command = [sys.executable, "-c", WORK, "1.4"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = done.stderr.splitlines()
    assert lines[0].startswith("outer: encode: 200 of 600 documents, ")
    assert " s so far, " in lines[0] and lines[0].endswith(" to go")
    assert lines[-1] == "long: 1 min 5 s, loss 0.5"
    assert done.stdout == '{"an": "answer"}\n'


@pytest.fixture
def screen():
    with bars.shown():
        yield bars._screen


def aged(name, *arguments):
    """A bar that is open for 10 seconds."""
    opened = bars.bar(name, *arguments)
    bar = opened.__enter__()
    bar.began -= 10
    return opened, bar


def test_a_part_counts_for_the_whole_until_its_end(screen):
    whole, bar = aged("encode", 100, "document")
    bar.add(40)
    inner, part = aged("shard", None, "document")
    with part.part(20) as read:
        read(0.25)
        assert screen.sentence().startswith("encode: 45 of 100 documents, 10 s so far")
    assert screen.sentence().startswith("encode: 60 of 100 documents")
    inner.__exit__(None, None, None)
    assert screen.sentence().startswith("encode: 40 of 100 documents")
    whole.__exit__(None, None, None)
    assert screen.sentence() == ""


def test_the_time_to_go_counts_what_this_process_has_done(screen):
    opened, bar = aged("training", 100, "step", 50)
    bar.done = 75
    bar.note = "loss 1"
    expected = "training: 75 of 100 steps, 10 s so far, 10 s to go, loss 1"
    assert screen.sentence() == expected
    opened.__exit__(None, None, None)


def test_nothing_is_shown_of_other_threads_and_of_moments(screen):
    def work():
        with bars.bar("elsewhere"):
            assert not screen.open

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with bars.bar("a moment"):
        assert screen.open and screen.sentence() == ""


def test_a_line_says_how_long_a_stretch_took_with_what_was_counted(screen, caplog):
    with caplog.at_level("INFO", "docjax"):
        with bars.bar("command", ends=False), bars.bar("encode", 9, "document") as bar:
            bar.add(9)
            bar.began -= 60
            with bars.bar("a part") as part:
                part.began -= 50
        with bars.bar("brief") as bar:
            pass
        with bars.bar("brief, with a result") as bar:
            bar.note = "the result"
    said = ["encode: 9 documents in 1 min 0 s", "brief, with a result: 0 s, the result"]
    assert caplog.messages == said


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "x: 10 s"),
        ((None, "step", 5), "x: 5 steps [00:10,  0.50 steps/s]"),
        (
            (100, "step", 5),
            "| 5/100 steps [00:10<03:10,  0.50 steps/s]",
        ),
    ],
)
def test_the_moving_line(arguments, text):
    bar = bars.Bar("x", *arguments)
    bar.began -= 10
    assert text in bar.line("x", 80)


def test_without_a_screen_a_bar_only_counts():
    with bars.bar("encode", unit="document") as bar:
        assert list(bar.each("abc")) == ["a", "b", "c"]
    assert bar.done == 3 and bars._screen is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (3725, "1 h 2 min")]
)
def test_a_duration_is_said_as_people_say_it(seconds, text):
    assert bars.duration(seconds) == text
