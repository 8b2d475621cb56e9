"""A model for the server: requests become jobs, and jobs become results."""

import dataclasses
import functools
import itertools
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from docjax.data.microbatches import round_up
from docjax.errors import UserError
from docjax.model import compare as comparison
from docjax.model.compare import Comparison, Side
from docjax.model.document_model import DocumentModel
from docjax.progress import bars
from docjax.serve.batching import Job
from docjax.serve.limits import Refusal
from docjax.types import Document, Segments

Item = str | Mapping[str, Any]
ROWS = 64  # the most segments in one call; a CPU gains nothing by more than 8
PAIRS = 4_000_000  # the most pairs of segments of two documents
LARGEST = 4096  # the most segments of a document with a graph (0.4 GiB), without a cap
LONGEST = 1024  # compiles shapes of documents up to so many segments, without a cap


class Service:
    """A model behind a server; any thread may call its methods.

    All calls have one of a few shapes, which `warm` compiles.
    """

    width: int | None = None  # the length of a vector; None before `warm`

    def __init__(self, model: DocumentModel):
        self.model = model
        self.rows = 8 if jax.default_backend() == "cpu" else ROWS
        self.inference = model.inference(self.rows)
        if model.inference(self.rows, model.query_prompt) != self.inference:
            raise UserError(
                "this model leaves prompts out of the mean, and those of queries and "
                "documents differ in length: docjax serve reads both together and "
                "cannot serve it; use docjax encode"
            )

    def documents(self, items: Sequence[Item]) -> tuple[list[Job], int]:
        """A job for each document, and the number of tokens that the cap leaves out.

        Raises:
          UserError: for a document without text.
          Refusal: 413 for a document whose graph would be too large.
        """
        stats: dict[str, int] = {}
        documents = list(self.model.read(items, stats))
        self._check_graphs(documents)
        jobs = [Job([each], self._document, len(each.tokens)) for each in documents]
        return jobs, stats["tokens_cut"]

    def queries(self, texts: Sequence[Item]) -> tuple[list[Job], int]:
        """A job for each query, and 0. Raises UserError if a query is too long."""
        if not all(isinstance(text, str) for text in texts):
            raise UserError("a query is a text: give a string for each query")
        queries = self.model.read_queries(texts)
        return [Job([query], self._query, len(query.tokens)) for query in queries], 0

    def comparison(self, pair: Sequence[Item | Document]) -> tuple[list[Job], int]:
        """One job for two documents, and the number of tokens that the cap leaves out.

        Raises:
          UserError: for a document without text, or two with too many segments.
          Refusal: 413 for a document whose graph would be too large.
        """
        sides = self.model.read_sides(pair)
        self._check_graphs([side.whole for side in sides])
        comparison.check_pairs(sides, PAIRS)
        documents = [side.tokens for side in sides]
        if not all(side.same for side in sides):
            documents += [side.whole for side in sides]
        tokens = sum(len(side.whole.tokens) for side in sides)
        cut = sum(side.tokens_cut for side in sides)
        return [Job(documents, functools.partial(self._compare, sides), tokens)], cut

    def read(self, pieces: Sequence[Segments]) -> list[np.ndarray]:
        """The segment vectors of each piece; one call encodes all pieces."""
        return self.inference.segments(self.model.params, pieces)

    def warm(self, stopped: threading.Event) -> None:
        """Compiles all shapes, so that no request waits for the compiler.

        Only the attention of a document's chunks to those of another compiles when a
        comparison asks for it.
        """
        params, inference = self.model.params, self.inference
        rows = [8 << i for i in range(8) if 8 << i <= self.rows]
        longest = self.model.limits.inference_segments or LONGEST
        counts = sorted({round_up(n + 1) for n in range(longest)})
        shapes = list(itertools.product(inference.widths, rows))
        # A document, two of them, and the sections of one where they are encoded.
        groups = (1, 2) if self.model.graph is not None else (1, 2, 9)
        total = len(shapes) + len(counts)
        with bars.of_this_thread(), bars.bar("compile", total, "shape") as shown:
            for width, height in shapes:
                if stopped.is_set():
                    return
                [vectors] = inference.segments(params, [_blank(height, width)])
                shown.add()
            for count in counts:
                if stopped.is_set():
                    return
                zeros = np.zeros((count, vectors.shape[1]), np.float32)
                document = _blank(count, 1, zeros)
                for size in groups:
                    [vector, *_] = inference.encode(params, [document] * size)
                shown.add()
        inference.queries(params, [document.first(1)])
        self.width = len(vector)

    def _check_graphs(self, documents: Sequence[Segments]) -> None:
        """Raises Refusal if the graph of a document would take too much memory."""
        most = self.model.limits.inference_segments or LARGEST
        longest = max(map(len, documents))
        if self.model.graph is not None and longest > most:
            raise Refusal(
                413,
                f"a document has {longest:,} segments, at most {most:,} are read, "
                "because its graph grows with their square: send the document in "
                "parts, or serve a model with the cap limits.inference_segments",
            )

    def _document(self, documents: Sequence[Segments]) -> np.ndarray:
        [vector] = self.inference.encode(self.model.params, documents)
        return vector

    def _query(self, queries: Sequence[Segments]) -> np.ndarray:
        return self.inference.queries(self.model.params, queries)[0]

    def _compare(
        self, sides: Sequence[Side], documents: Sequence[Segments]
    ) -> Comparison:
        sides = [
            dataclasses.replace(side, tokens=tokens, whole=whole)
            for side, tokens, whole in zip(sides, documents[:2], documents[-2:])
        ]
        return comparison.compare(self.inference, self.model.params, *sides)


def _blank(count: int, length: int, vectors: np.ndarray | None = None) -> Segments:
    """A document of `count` segments of `length` tokens."""
    return Segments(
        np.zeros(count * length, np.int32),
        np.arange(count + 1) * length,
        np.zeros((count, 2), np.int32),
        np.zeros((0, 2), np.int32),
        vectors,
    )
