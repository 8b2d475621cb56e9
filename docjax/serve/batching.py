"""Segments of all requests that wait are read together, up to a number of tokens."""

import asyncio
import collections
import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from docjax.serve.counters import Metrics
from docjax.types import Segments

TURNS = 8  # of requests, in one batch


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """One thing to encode: a document, a query, or two documents to compare.

    documents: whose segments are read; finish: gives the result, of these documents
    with their vectors; tokens: that the client is told of.
    """

    documents: Sequence[Segments]
    finish: Callable[[Sequence[Segments]], Any]
    tokens: int


@dataclasses.dataclass(frozen=True, eq=False)
class Pending:
    """A request whose segments are being read.

    pieces: of its documents, that wait for their turn; vectors: of those before them;
    done: set when nothing is left.
    """

    pieces: collections.deque[Segments]
    done: asyncio.Future
    vectors: list[np.ndarray] = dataclasses.field(default_factory=list)


class Batcher:
    """Encodes segments in one thread, while new requests queue up.

    The batcher cuts documents into pieces of about `tokens` / TURNS tokens, and requests
    take turns piece by piece, so that a short request does not wait for a long one. After
    a disconnect the remaining pieces are dropped. The pieces of one call have at most
    `tokens` tokens together, or are a single segment. A second thread turns the vectors
    into answers.
    """

    def __init__(
        self,
        read: Callable[[list[Segments]], Sequence[np.ndarray]],
        tokens: int,
        metrics: Metrics,
    ):
        self.read, self.tokens, self.metrics = read, tokens, metrics
        self.waiting: collections.deque[Pending] = collections.deque()
        self.arrived = asyncio.Event()
        self.reading = ThreadPoolExecutor(1, "read")
        self.finishing = ThreadPoolExecutor(1, "finish")
        metrics.waiting.set_function(
            lambda: sum(len(pending.pieces) for pending in self.waiting)
        )

    async def __call__(self, jobs: Sequence[Job]) -> list[Any]:
        """The results of a request's jobs."""
        loop = asyncio.get_running_loop()
        documents = [one for job in jobs for one in job.documents]
        pieces = [p for one in documents for p in _cut(one, self.tokens // TURNS)]
        pending = Pending(collections.deque(pieces), loop.create_future())
        self.waiting.append(pending)
        self.arrived.set()
        try:
            await pending.done
            vectors = np.concatenate(pending.vectors)
            return await self._finish(jobs, _with_vectors(documents, vectors))
        finally:
            if pending in self.waiting:
                self.waiting.remove(pending)

    async def run(self) -> None:
        """Reads what comes, until cancelled."""
        while True:
            batch = self._next()
            if not batch:
                self.arrived.clear()
                await self.arrived.wait()
                continue
            pieces = [piece for _, piece in batch]
            self.metrics.batch(sum(len(piece.tokens) for piece in pieces))
            try:
                found = await self.in_thread(self.read, pieces)
            except Exception as error:  # noqa: BLE001 each of the waiting is told
                for pending, _ in batch:
                    pending.pieces.clear()
                    if not pending.done.done():
                        pending.done.set_exception(error)
                continue
            for (pending, _), vectors in zip(batch, found, strict=True):
                pending.vectors.append(vectors)
            for pending, _ in batch:
                if not pending.pieces and not pending.done.done():
                    pending.done.set_result(None)

    async def in_thread(self, work: Callable, *arguments: Any) -> Any:
        """What `work` gives, run where segments are read: never beside that."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.reading, work, *arguments)

    def close(self) -> None:
        """Ends both threads, when they have done what they have begun."""
        for thread in (self.reading, self.finishing):
            thread.shutdown(cancel_futures=True)

    async def _finish(
        self, jobs: Sequence[Job], documents: Sequence[Segments]
    ) -> list[Any]:
        """The jobs' results, one by one, so that other requests have their turn."""
        loop = asyncio.get_running_loop()
        read, found = iter(documents), []
        for job in jobs:
            own = [next(read) for _ in job.documents]
            found.append(await loop.run_in_executor(self.finishing, job.finish, own))
        self.metrics.documents.inc(len(jobs))
        return found

    def _next(self) -> list[tuple[Pending, Segments]]:
        """The pieces that are read now."""
        found: list[tuple[Pending, Segments]] = []
        total = 0
        while self.waiting:
            pending = self.waiting.popleft()
            turn = total + self.tokens / TURNS
            while pending.pieces and total < turn:
                tokens = len(pending.pieces[0].tokens)
                if found and total + tokens > self.tokens:
                    self.waiting.appendleft(pending)  # the first of the next batch
                    return found
                found.append((pending, pending.pieces.popleft()))
                total += tokens
            if pending.pieces:
                self.waiting.append(pending)
        return found


def _cut(document: Segments, tokens: int) -> list[Segments]:
    """A document's segments in pieces of at most `tokens` and one segment more."""
    offsets = document.offsets
    starts = np.flatnonzero(np.diff(offsets[:-1] // tokens, prepend=-1))
    return [
        dataclasses.replace(
            document,
            tokens=document.tokens[offsets[start] : offsets[end]],
            offsets=offsets[start : end + 1] - offsets[start],
            places=document.places[start:end],
        )
        for start, end in zip(starts, [*starts[1:], len(document)])
    ]


def _with_vectors(documents: Sequence[Segments], vectors: np.ndarray) -> list[Segments]:
    """The documents with their parts of the vectors of all their segments."""
    ends = np.cumsum([len(one) for one in documents])
    return [
        dataclasses.replace(one, vectors=part)
        for one, part in zip(documents, np.split(vectors, ends[:-1]))
    ]
