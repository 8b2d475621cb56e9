"""What requests ask of a model: texts become jobs, and jobs become results."""

import dataclasses
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from docjax import comparison
from docjax.comparison import Comparison
from docjax.config import UserError
from docjax.data import batches
from docjax.model import COUNTS, DocumentModel
from docjax.serve.batching import Job
from docjax.types import Document, Segments

Item = str | Mapping[str, Any]
ROWS = 64  # segments in one call at most; a CPU gains nothing by more than 8
PAIRS = 4_000_000  # of segments, of two documents that are compared
LONGEST = 64  # segments of a document that shapes are compiled for, without a cap


class Service:
    """A model behind a server; its methods may be called from any thread.

    All calls have one of few shapes, which `warm` compiles.
    width: of the vectors, known when it has.
    """

    width: int | None = None

    def __init__(self, model: DocumentModel):
        self.model = model
        self.rows = 8 if jax.default_backend() == "cpu" else ROWS
        self.inference = model.inference(self.rows)

    def documents(self, items: Sequence[Item]) -> tuple[list[Job], int]:
        """A job for each document; how many of their tokens the cap leaves out.

        Raises:
          UserError: for a document without text.
        """
        stats = dict.fromkeys(COUNTS, 0)
        found = list(self.model.read(items, stats))
        jobs = [Job("document", one, len(one.tokens)) for one in found]
        return jobs, stats["tokens_cut"]

    def queries(self, texts: Sequence[Item]) -> tuple[list[Job], int]:
        """The same of queries. Raises UserError for one that would be cut."""
        if not all(isinstance(text, str) for text in texts):
            raise UserError("a query is a text")
        found = self.model.read_queries(texts)
        return [Job("query", one, len(one.tokens)) for one in found], 0

    def comparison(self, pair: Sequence[Item | Document]) -> tuple[list[Job], int]:
        """One job for two documents.

        Raises:
          UserError: for a document without text, or two with too many segments.
        """
        sides = self.model.read_pair(*pair)
        if math.prod(len(side.segments) for side in sides) > PAIRS:
            a, b = (f"{len(side.segments):,}" for side in sides)
            raise UserError(f"{a} x {b} passages: at most {PAIRS:,} pairs are compared")
        tokens = sum(len(side.whole.tokens) for side in sides)
        cut = sum(side.tokens_cut for side in sides)
        return [Job("comparison", sides, tokens)], cut

    def work(self, jobs: Sequence[Job]) -> list[np.ndarray | Comparison]:
        """Each job's vector or comparison; all segments are encoded together."""
        params = self.model.params
        read = [job.content for job in jobs if job.kind != "comparison"]
        encoded = iter(self._encoded(read))
        contents = [
            job.content if job.kind == "comparison" else next(encoded) for job in jobs
        ]
        documents = iter(
            self.inference.encode(
                params,
                [c for job, c in zip(jobs, contents) if job.kind == "document"],
            )
        )
        found = []
        for job, content in zip(jobs, contents):
            if job.kind == "document":
                found.append(next(documents))
            elif job.kind == "query":
                found.append(self.inference.queries(params, [content])[0])
            else:
                found.append(comparison.compare(self.inference, params, *content))
        return found

    def warm(self, stopped: threading.Event) -> None:
        """Compiles what requests need, so that none has to wait for it."""
        params, inference = self.model.params, self.inference
        rows = [8 << i for i in range(8) if 8 << i <= self.rows]
        for width in inference.widths:
            for height in rows:
                if stopped.is_set():
                    return
                vectors = inference.segments(params, [_blank(height, width)])
        longest = self.model.limits["inference_segments"] or LONGEST
        for count in sorted({batches.round_up(n + 1) for n in range(longest)}):
            if stopped.is_set():
                return
            one = _blank(count, 1, np.zeros((count, vectors.shape[1]), np.float32))
            [vector] = inference.encode(params, [one])
        self.width = len(vector)
        inference.queries(params, [one.take(np.zeros(1, int))])

    def _encoded(self, read: Sequence[Segments]) -> Iterator[Segments]:
        """The same with the vectors of their segments."""
        if not read:
            return
        vectors = self.inference.segments(self.model.params, read)
        ends = np.cumsum([len(one) for one in read])
        for one, part in zip(read, np.split(vectors, ends[:-1])):
            yield dataclasses.replace(one, vectors=part)


def _blank(count: int, length: int, vectors: np.ndarray | None = None) -> Segments:
    """A document of some segments of the same length."""
    return Segments(
        np.zeros(count * length, np.int32),
        np.arange(count + 1) * length,
        np.zeros(count, np.int32),
        np.zeros((0, 2), np.int32),
        vectors,
    )
