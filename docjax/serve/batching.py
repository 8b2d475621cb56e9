"""Reads the segments of all waiting requests together, up to a number of tokens."""

import asyncio
import collections
import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from docjax.serve.counters import Metrics
from docjax.types import Segments

TURNS = 8  # requests that take turns in one batch


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """A document, a query, or two documents to compare.

    Attributes:
      documents: the segments to encode.
      finish: makes the result from `documents` with the vectors of their segments.
      tokens: the number of tokens that the answer reports.
    """

    documents: Sequence[Segments]
    finish: Callable[[Sequence[Segments]], Any]
    tokens: int


@dataclasses.dataclass(frozen=True, eq=False)
class Pending:
    """A request whose segments are being read.

    Attributes:
      pieces: the pieces of documents that still wait.
      done: set when all pieces are encoded.
      vectors: the vectors of the encoded pieces, in order.
    """

    pieces: collections.deque[Segments]
    done: asyncio.Future
    vectors: list[np.ndarray] = dataclasses.field(default_factory=list)


class Batcher:
    """Encodes segments in one thread, while new requests queue up.

    The batcher cuts documents into pieces of about `tokens` / TURNS tokens. Requests
    take turns piece by piece, so that a short request does not wait for a long one.
    After a disconnect the remaining pieces are dropped. One call reads at most `tokens`
    tokens, or a single longer piece. A second thread turns the vectors into answers.
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
        documents = [document for job in jobs for document in job.documents]
        most = self.tokens // TURNS
        pieces = [piece for document in documents for piece in _cut(document, most)]
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
        """Reads the pieces of all requests, until it is cancelled."""
        while True:
            batch = self._next()
            if not batch:
                self.arrived.clear()
                await self.arrived.wait()
                continue
            pieces = [piece for _, piece in batch]
            self.metrics.batch(sum(len(piece.tokens) for piece in pieces))
            try:
                vectors = await self.in_thread(self.read, pieces)
            except Exception as error:  # noqa: BLE001 all requests of the batch get it
                for pending, _ in batch:
                    pending.pieces.clear()
                    if not pending.done.done():
                        pending.done.set_exception(error)
                continue
            for (pending, _), part in zip(batch, vectors, strict=True):
                pending.vectors.append(part)
            for pending, _ in batch:
                if not pending.pieces and not pending.done.done():
                    pending.done.set_result(None)

    async def in_thread(self, work: Callable, *arguments: Any) -> Any:
        """The result of `work`, run in the thread that reads segments."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.reading, work, *arguments)

    def close(self) -> None:
        """Ends both threads after their current work."""
        for thread in (self.reading, self.finishing):
            thread.shutdown(cancel_futures=True)

    async def _finish(
        self, jobs: Sequence[Job], documents: Sequence[Segments]
    ) -> list[Any]:
        """The jobs' results, made one by one: other requests have turns in between."""
        loop = asyncio.get_running_loop()
        rest, results = iter(documents), []
        for job in jobs:
            part = [next(rest) for _ in job.documents]
            results.append(await loop.run_in_executor(self.finishing, job.finish, part))
        self.metrics.documents.inc(len(jobs))
        return results

    def _next(self) -> list[tuple[Pending, Segments]]:
        """The pieces of the next batch, each with its request."""
        batch: list[tuple[Pending, Segments]] = []
        total = 0
        while self.waiting:
            pending = self.waiting.popleft()
            turn = total + self.tokens / TURNS
            while pending.pieces and total < turn:
                tokens = len(pending.pieces[0].tokens)
                if batch and total + tokens > self.tokens:
                    self.waiting.appendleft(pending)  # first in the next batch
                    return batch
                batch.append((pending, pending.pieces.popleft()))
                total += tokens
            if pending.pieces:
                self.waiting.append(pending)
        return batch


def _cut(document: Segments, tokens: int) -> list[Segments]:
    """A document's segments in pieces of at most `tokens` tokens plus one segment."""
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
    """The documents, each with its part of the segment vectors."""
    ends = np.cumsum([len(document) for document in documents])
    return [
        dataclasses.replace(document, vectors=part)
        for document, part in zip(documents, np.split(vectors, ends[:-1]))
    ]
