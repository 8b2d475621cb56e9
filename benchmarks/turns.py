"""Times of programs that take turns, so that other work on the machine slows all alike."""

import time
from collections.abc import Callable, Mapping
from typing import Any

PAUSE = 0.1  # seconds, in which the threads of the other library go to sleep


def in_turns(
    runs: Mapping[str, Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """The seconds of each run, `repeats` times; nothing warms them up."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            time.sleep(PAUSE)
            started = clock()
            run()
            seconds[name].append(clock() - started)
    return seconds
