"""Reads the segments of all waiting requests together, up to a number of tokens."""

import asyncio
import collections
import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from prometheus_client import Counter, Histogram

from docjax.types import Segments

PIECES = 8  # long pieces in one batch
SIZES = (16, 64, 256, 1024, 4096, 8192, 16384, 65536, 262144)  # tokens of a batch
DOCUMENTS = Counter("docjax_documents", "Documents and queries that were encoded.")
BATCH_TOKENS = Histogram(
    "docjax_batch_tokens", "Tokens that were read together.", buckets=SIZES
)


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """A document, a query, or two documents to compare."""

    documents: Sequence[Segments]  # to encode
    finish: Callable[[Sequence[Segments]], Any]  # their vectors -> the result
    tokens: int  # that the answer reports


@dataclasses.dataclass(frozen=True, eq=False)
class Pending:
    """A request whose segments are being read."""

    pieces: collections.deque[Segments]  # of documents, which still wait
    done: asyncio.Future  # set when all pieces are encoded
    vectors: list[np.ndarray] = dataclasses.field(default_factory=list)  # in order


class Batcher:
    """Encodes segments in one thread, while new requests queue up.

    The batcher cuts documents into pieces of about `tokens` / PIECES tokens, and takes
    one piece of each request in turn. After a disconnect the remaining pieces are
    dropped. One call reads at most `tokens` tokens, or a single longer piece.
    """

    def __init__(
        self, read: Callable[[list[Segments]], Sequence[np.ndarray]], tokens: int
    ):
        self.read, self.tokens = read, tokens
        self.waiting: collections.deque[Pending] = collections.deque()
        self.arrived = asyncio.Event()
        self.thread = ThreadPoolExecutor(1, "read")

    async def __call__(self, jobs: Sequence[Job]) -> list[Any]:
        """The results of a request's jobs."""
        documents = [document for job in jobs for document in job.documents]
        most = self.tokens // PIECES
        pieces = [piece for document in documents for piece in _cut(document, most)]
        done = asyncio.get_running_loop().create_future()
        pending = Pending(collections.deque(pieces), done)
        self.waiting.append(pending)
        self.arrived.set()
        await done
        read = iter(_with_vectors(documents, np.concatenate(pending.vectors)))
        results = []
        for job in jobs:
            part = [next(read) for _ in job.documents]
            results.append(await asyncio.to_thread(job.finish, part))
        DOCUMENTS.inc(len(jobs))
        return results

    async def run(self) -> None:
        """Reads the pieces of all requests, until it is cancelled."""
        while True:
            batch = self._next()
            if batch:
                await self._read(batch)
            else:
                self.arrived.clear()
                await self.arrived.wait()

    async def in_thread(self, work: Callable, *arguments: Any) -> Any:
        """The result of `work`, run in the thread that reads segments."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.thread, work, *arguments)

    def close(self) -> None:
        """Ends the thread after its current work."""
        self.thread.shutdown(cancel_futures=True)

    def _next(self) -> list[tuple[Pending, Segments]]:
        """The pieces of the next batch, each with its request."""
        batch: list[tuple[Pending, Segments]] = []
        total = 0
        while self.waiting:
            pending = self.waiting.popleft()
            if pending.done.done():  # the client has disconnected, or a piece failed
                continue
            total += len(pending.pieces[0].tokens)
            if batch and total > self.tokens:
                self.waiting.appendleft(pending)  # first in the next batch
                break
            batch.append((pending, pending.pieces.popleft()))
            if pending.pieces:
                self.waiting.append(pending)
        return batch

    async def _read(self, batch: Sequence[tuple[Pending, Segments]]) -> None:
        """Reads the pieces; the requests with all their pieces are done."""
        pieces = [piece for _, piece in batch]
        BATCH_TOKENS.observe(sum(len(piece.tokens) for piece in pieces))
        try:
            vectors = await self.in_thread(self.read, pieces)
        except Exception as error:  # noqa: BLE001 all requests of the batch get it
            for pending, _ in batch:
                if not pending.done.done():
                    pending.done.set_exception(error)
            return
        for (pending, _), part in zip(batch, vectors, strict=True):
            pending.vectors.append(part)
        for pending, _ in batch:
            if not pending.pieces and not pending.done.done():
                pending.done.set_result(None)


def _cut(document: Segments, tokens: int) -> list[Segments]:
    """A document's segments in pieces of at most `tokens` tokens plus one segment."""
    starts = np.flatnonzero(np.diff(document.offsets[:-1] // tokens, prepend=-1))
    return list(map(document.take, np.split(np.arange(len(document)), starts[1:])))


def _with_vectors(documents: Sequence[Segments], vectors: np.ndarray) -> list[Segments]:
    """The documents, each with its part of the segment vectors."""
    ends = np.cumsum([len(document) for document in documents])
    return [
        dataclasses.replace(document, vectors=part)
        for document, part in zip(documents, np.split(vectors, ends[:-1]))
    ]
