"""Requests are tokenised in threads of their own, short ones before long ones."""

import asyncio
import functools
import itertools
import json
import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

SHORT = 1 << 15  # characters of a request


class Turns:
    """Two threads, one of them for short requests alone: they wait for no long one.

    In each the shortest is next; what nobody waits for any more is not begun.
    """

    def __init__(self) -> None:
        self.threads = Turn("short"), Turn("long")

    async def __call__(self, work: Callable, items: Any) -> Any:
        """What `work` gives of `items`, JSON values."""
        size = len(json.dumps(items))
        return await self.threads[size > SHORT](size, work, items)

    def close(self) -> None:
        """Ends both threads, when they have done what they have begun."""
        for turn in self.threads:
            turn.thread.shutdown(cancel_futures=True)


class Turn:
    """One thread, in which the smallest work is next."""

    def __init__(self, name: str):
        self.thread = ThreadPoolExecutor(1, name)
        self.waiting: queue.PriorityQueue = queue.PriorityQueue()
        self.numbers = itertools.count()  # of the same size the first is next
        self.works: dict[Future, Callable] = {}

    async def __call__(self, size: int, work: Callable, *arguments: Any) -> Any:
        """What `work` gives."""
        asked: Future = Future()
        self.works[asked] = functools.partial(work, *arguments)
        self.waiting.put((size, next(self.numbers), asked))
        self.thread.submit(self._next)
        try:
            return await asyncio.wrap_future(asked)
        finally:
            self.works.pop(asked, None)  # which may be large

    def _next(self) -> None:
        *_, asked = self.waiting.get()
        work = self.works.get(asked)
        if work is None or not asked.set_running_or_notify_cancel():
            return
        try:
            asked.set_result(work())
        except BaseException as error:  # noqa: BLE001 who waits for it is told
            asked.set_exception(error)
