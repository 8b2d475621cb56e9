"""One stretch of work: what is done of it, in numbers and in words."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")
Count = int | float  # of units; a fraction is a part of a unit


@dataclasses.dataclass(eq=False)
class Bar:
    """A stretch of work: what is done of it."""

    name: str
    total: Count | None = None
    unit: str = ""
    done: Count = 0
    note: str = ""  # what to say behind the counts
    ends: bool = True  # with a line that says how long it took
    first: Count = 0  # of what is done, what was done before
    began: float = dataclasses.field(default_factory=time.monotonic)

    def add(self, count: Count = 1) -> None:
        """Counts what is done; a fraction of a unit counts too."""
        self.done += count

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The items; counts each one that is taken."""
        for item in items:
            yield item
            self.done += 1

    @contextlib.contextmanager
    def part(self, count: Count) -> Iterator[Callable[[Count], None]]:
        """Gives a function that counts a share of `count`; at the end all is counted."""
        before = self.done

        def read(share: Count) -> None:
            self.done += share * count

        yield read
        self.done = before + count

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def counts(self) -> str:
        """312 of 600 documents; empty without a unit."""
        if not self.unit:
            return ""
        of = f" of {self.total:,.0f}" if self.total and self.done < self.total else ""
        number = self.total if of else self.done
        return f"{int(self.done):,}{of} {self.unit}{'' if number == 1 else 's'}"

    def sentence(self, name: str) -> str:
        """How far the work called `name` is, in a line of the log."""
        left = ""
        if self.total and self.first < self.done < self.total:
            share = (self.done - self.first) / (self.total - self.first)
            left = f", {duration(self.seconds * (1 / share - 1))} to go"
        parts = [self.counts, f"{duration(self.seconds)} so far{left}", self.note]
        return f"{name}: {', '.join(filter(None, parts))}"

    def line(self, name: str, columns: int) -> str:
        """The line that moves."""
        if not self.unit:
            return f"{name}: {duration(self.seconds)}"
        form = "{desc}{n_fmt}{unit} [{elapsed}, {rate_noinv_fmt}{postfix}]"
        if self.total:
            form = (
                "{desc}{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}{unit} "
                "[{elapsed}<{remaining}, {rate_noinv_fmt}{postfix}]"
            )
        return tqdm.format_meter(
            bar_format=form,
            n=int(self.done),
            total=self.total and int(self.total),
            elapsed=self.seconds,
            ncols=columns,
            prefix=f"{name}: ",
            unit=f" {self.unit}s",
            initial=int(self.first),
            postfix=self.note,
        )


def duration(seconds: Count) -> str:
    """Seconds as a person says them: 4 s, 2 min 5 s, 3 h 20 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
