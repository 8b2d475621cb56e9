"""Tokenises requests in two threads, short requests before long requests."""

import asyncio
import functools
import itertools
import json
import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

SHORT = 1 << 15  # characters of the longest short request


class Turns:
    """Two threads, one only for short requests, which never wait for a long request.

    Each thread takes its shortest request next, and skips requests whose client has
    disconnected.
    """

    def __init__(self) -> None:
        self.threads = Turn("short"), Turn("long")

    async def __call__(self, work: Callable, items: Any) -> Any:
        """The result of `work(items)`; the items are JSON values."""
        size = len(json.dumps(items))
        return await self.threads[size > SHORT](size, work, items)

    def close(self) -> None:
        """Ends both threads after their current work."""
        for turn in self.threads:
            turn.thread.shutdown(cancel_futures=True)


class Turn:
    """One thread, which takes the smallest work next."""

    def __init__(self, name: str):
        self.thread = ThreadPoolExecutor(1, name)
        self.waiting: queue.PriorityQueue = queue.PriorityQueue()
        self.numbers = itertools.count()  # work of equal size runs in order of arrival
        self.works: dict[Future, Callable] = {}

    async def __call__(self, size: int, work: Callable, *arguments: Any) -> Any:
        """The result of `work(*arguments)`."""
        result: Future = Future()
        self.works[result] = functools.partial(work, *arguments)
        self.waiting.put((size, next(self.numbers), result))
        self.thread.submit(self._next)
        try:
            return await asyncio.wrap_future(result)
        finally:
            self.works.pop(result, None)  # its arguments may be large

    def _next(self) -> None:
        *_, result = self.waiting.get()
        work = self.works.get(result)
        if work is None or not result.set_running_or_notify_cancel():
            return
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 the caller gets the error
            result.set_exception(error)
