"""Documents of all requests that wait are encoded together, up to a number of tokens."""

import asyncio
import collections
import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from docjax.serve.limits import Refusal
from docjax.serve.metrics import Metrics

TURNS = 8  # of requests, in one batch


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """One thing to encode: a document, a query, or two documents to compare."""

    kind: str  # "document", "query" or "comparison"
    content: Any
    tokens: int


Request = collections.deque[tuple[Job, asyncio.Future]]


class Batcher:
    """Runs jobs in one thread; while some are run, others come and wait.

    Requests that wait take turns of a TURNS-th of `tokens`, so that a short request
    does not wait for all of a long one. What is taken together has at most `tokens`
    tokens, or is one larger job.
    """

    def __init__(
        self,
        work: Callable[[list[Job]], Sequence[Any]],
        tokens: int,
        seconds: float,
        metrics: Metrics,
    ):
        self.work, self.tokens, self.seconds = work, tokens, seconds
        self.metrics = metrics
        self.waiting: collections.deque[Request] = collections.deque()
        self.arrived = asyncio.Event()
        self.thread = ThreadPoolExecutor(1, "encode")

    async def __call__(self, jobs: Sequence[Job]) -> list[Any]:
        """The results of a request's jobs.

        When nobody waits for them any more, those that have not begun are left out.

        Raises:
          Refusal: 503, after `seconds`.
        """
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in jobs]
        self.waiting.append(collections.deque(zip(jobs, futures)))
        self.arrived.set()
        try:
            async with asyncio.timeout(self.seconds):
                return list(await asyncio.gather(*futures))
        except TimeoutError:
            raise Refusal(
                503, f"no answer within {self.seconds:g} seconds: too much waits"
            ) from None
        finally:
            for future in futures:
                future.cancel()

    async def run(self) -> None:
        """Runs what comes, until cancelled."""
        while True:
            batch = self._next()
            self.metrics.waiting.set(sum(map(len, self.waiting)))
            if not batch:
                self.arrived.clear()
                await self.arrived.wait()
                continue
            jobs = [job for job, _ in batch]
            self.metrics.batch(len(jobs), sum(job.tokens for job in jobs))
            try:
                found = await self.in_thread(self.work, jobs)
            except Exception as error:  # noqa: BLE001 each of the waiting is told
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), result in zip(batch, found, strict=True):
                if not future.done():
                    future.set_result(result)

    async def in_thread(self, work: Callable, *arguments: Any) -> Any:
        """What `work` gives, run where jobs are run: never beside them."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.thread, work, *arguments)

    def _next(self) -> list[tuple[Job, asyncio.Future]]:
        """The jobs that are run now."""
        found: list[tuple[Job, asyncio.Future]] = []
        total = 0
        while self.waiting:
            request = self.waiting.popleft()
            turn = total + self.tokens / TURNS
            while request and total < turn:
                job, future = request[0]
                if not future.done():  # else nobody waits for it
                    if found and total + job.tokens > self.tokens:
                        self.waiting.appendleft(request)  # the first of the next batch
                        return found
                    found.append((job, future))
                    total += job.tokens
                request.popleft()
            if request:
                self.waiting.append(request)
        return found
