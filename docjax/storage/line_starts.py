"""Any line of a large text file at once: the file, and the places where lines start."""

import mmap
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from docjax.storage import atomic
from docjax.storage.arrays import growing_array, mapped

AT_ONCE = 1 << 16  # lines


class Lines(Sequence[bytes]):
    """The lines of a file that `write_starts` has read; few of them are in memory."""

    def __init__(self, file: Path):
        self._starts = mapped(starts_of(file))
        with file.open("rb") as stream:
            self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> bytes:
        return self._bytes[self._starts[number] : self._starts[number + 1]]


def write(lines: Iterable[str], file: Path) -> None:
    """Writes lines with ends, and where they start."""
    with (
        atomic.partial(file) as partial,
        open(partial, "w", encoding="utf-8") as stream,
    ):
        stream.writelines(lines)
    write_starts(file)


def write_starts(file: Path) -> None:
    """Writes where the lines of a file start, and where the last one ends."""
    with (
        atomic.partial(starts_of(file)) as partial,
        growing_array(partial, np.int64) as append,
        file.open("rb") as stream,
    ):
        starts, place = [0], 0
        for line in stream:
            place += len(line)
            starts.append(place)
            if len(starts) >= AT_ONCE:
                append(np.array(starts))
                starts = []
        append(np.array(starts))


def starts_of(file: Path) -> Path:
    """The file of the places where the lines of `file` start."""
    return file.with_name(f"{file.name}.starts.npy")
