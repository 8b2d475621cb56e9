"""What requests ask of a model: texts become jobs, and jobs become results."""

import dataclasses
import functools
import itertools
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from docjax.data.microbatches import round_up
from docjax.errors import UserError
from docjax.model import compare as comparison
from docjax.model.compare import Comparison, Side
from docjax.model.document_model import COUNTS, DocumentModel
from docjax.serve.batching import Job
from docjax.serve.limits import Refusal
from docjax.types import Document, Segments

Item = str | Mapping[str, Any]
ROWS = 64  # segments in one call at most; a CPU gains nothing by more than 8
PAIRS = 4_000_000  # of segments, of two documents that are compared
LARGEST = 4096  # segments of a document with a graph (0.4 GiB), without a cap
LONGEST = 1024  # segments of a document that shapes are compiled for, without a cap


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
          Refusal: 413, for one whose graph would be too large.
        """
        stats = dict.fromkeys(COUNTS, 0)
        found = list(self.model.read(items, stats))
        self._check_graphs(found)
        jobs = [Job([one], self._document, len(one.tokens)) for one in found]
        return jobs, stats["tokens_cut"]

    def queries(self, texts: Sequence[Item]) -> tuple[list[Job], int]:
        """The same of queries. Raises UserError for one that would be cut."""
        if not all(isinstance(text, str) for text in texts):
            raise UserError("a query is a text")
        found = self.model.read_queries(texts)
        return [Job([one], self._query, len(one.tokens)) for one in found], 0

    def comparison(self, pair: Sequence[Item | Document]) -> tuple[list[Job], int]:
        """One job for two documents.

        Raises:
          UserError: for a document without text, or two with too many segments.
          Refusal: 413, for one whose graph would be too large.
        """
        sides = self.model.read_pair(*pair)
        self._check_graphs([side.whole for side in sides])
        comparison.check_pairs(sides, PAIRS)
        read = [side.tokens for side in sides]
        if not all(side.same for side in sides):
            read += [side.whole for side in sides]
        tokens = sum(len(side.whole.tokens) for side in sides)
        cut = sum(side.tokens_cut for side in sides)
        return [Job(read, functools.partial(self._compare, sides), tokens)], cut

    def read(self, pieces: Sequence[Segments]) -> list[np.ndarray]:
        """The vectors of each piece's segments; all are encoded together."""
        return self.inference.segments(self.model.params, pieces)

    def warm(self, stopped: threading.Event) -> None:
        """Compiles what requests need, so that none has to wait for it."""
        params, inference = self.model.params, self.inference
        rows = [8 << i for i in range(8) if 8 << i <= self.rows]
        longest = self.model.limits.inference_segments or LONGEST
        counts = sorted({round_up(n + 1) for n in range(longest)})
        shapes = list(itertools.product(inference.widths, rows))
        total = len(shapes) + len(counts)
        with tqdm(total=total, desc="compile", unit="shape", disable=None) as bar:
            for width, height in shapes:
                if stopped.is_set():
                    return
                [vectors] = inference.segments(params, [_blank(height, width)])
                bar.update()
            for count in counts:
                if stopped.is_set():
                    return
                one = _blank(count, 1, np.zeros((count, vectors.shape[1]), np.float32))
                [vector] = inference.encode(params, [one])
                list(inference.encode(params, [one, one]))  # as they are compared
                bar.update()
        inference.queries(params, [one.first(1)])
        self.width = len(vector)

    def _check_graphs(self, documents: Sequence[Segments]) -> None:
        """Raises Refusal for a document whose graph would take too much memory."""
        most = self.model.limits.inference_segments or LARGEST
        longest = max(map(len, documents))
        if self.model.graph is not None and longest > most:
            raise Refusal(
                413,
                f"a document has {longest:,} segments, and a graph that grows with "
                f"their square: at most {most:,} are read; send it in parts, or serve "
                "a model with a cap, limits.inference_segments",
            )

    def _document(self, read: Sequence[Segments]) -> np.ndarray:
        [vector] = self.inference.encode(self.model.params, read)
        return vector

    def _query(self, read: Sequence[Segments]) -> np.ndarray:
        return self.inference.queries(self.model.params, read)[0]

    def _compare(self, sides: Sequence[Side], read: Sequence[Segments]) -> Comparison:
        sides = [
            dataclasses.replace(side, tokens=tokens, whole=whole)
            for side, tokens, whole in zip(sides, read[:2], read[-2:])
        ]
        return comparison.compare(self.inference, self.model.params, *sides)


def _blank(count: int, length: int, vectors: np.ndarray | None = None) -> Segments:
    """A document of some segments of the same length."""
    return Segments(
        np.zeros(count * length, np.int32),
        np.arange(count + 1) * length,
        np.zeros((count, 2), np.int32),
        np.zeros((0, 2), np.int32),
        vectors,
    )
