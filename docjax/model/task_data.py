"""Documents for tasks: a model encodes each document once, for all tasks."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from docjax.data.masking import Masking
from docjax.data.shuffled import Shuffled
from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.model.token_measures import of_first_token, token_loss
from docjax.storage import atomic
from docjax.tasks.embeddings import sampled
from docjax.types import Document, Embeddings, Encoded, Segments, TokenAttention

Source = Callable[[], Iterator[Document]]


def write(folder: Path, name: str, text: str) -> None:
    """Writes a file that a task keeps, and its folders."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_text(path, text)


@dataclasses.dataclass(frozen=True, eq=False)
class FileData:
    """The documents of a file and their vectors, for tasks; a part is a split.

    The model encodes a document once, however many tasks read its vector; tasks that
    analyse the same sample of texts read the source once.
    """

    model: DocumentModel
    source: Source  # each call starts again at the first document
    kept: dict[str, Float[np.ndarray, " d"]] = dataclasses.field(default_factory=dict)
    samples: dict[tuple, list[Document]] = dataclasses.field(default_factory=dict)
    folder: Path | None = None  # of the files that tasks keep; None: they are dropped
    warns: bool = True  # of what the model does not read

    @property
    def similarity(self) -> str:
        return self.model.similarity_fn_name

    def documents(self, part: str) -> Iterator[Document]:
        return (document for document in self.source() if document.split == part)

    def labels(self, part: str) -> list[str]:
        return list(self.label_of.get(part, {}).values())

    def labelled(self, part: str) -> Embeddings:
        ids = list(self.label_of.get(part, {}))
        vectors = self.vectors(ids)
        return Embeddings(vectors, self.labels(part), self._predictions(vectors))

    @functools.cached_property
    def label_of(self) -> dict[str, dict[str, str]]:
        """The label of each labelled document, by part and id."""
        labels: dict[str, dict[str, str]] = {}
        for document in self.source():
            if document.label is not None:
                labels.setdefault(document.split, {})[document.id] = document.label
        return labels

    def sample(self, part: str, most: int | None, seed: int) -> list[Document]:
        name = part, most, seed
        if name not in self.samples:
            read = functools.partial(self.documents, part)
            self.samples[name] = sampled(read, part, most, seed)
        return self.samples[name]

    def missing(self, ids: Iterable[str]) -> list[str]:
        return sorted(set(ids).difference(document.id for document in self.source()))

    def vectors(self, ids: Sequence[str]) -> Float[np.ndarray, "c d"]:
        new = [name for name in dict.fromkeys(ids) if name not in self.kept]
        if new:
            self.kept.update(self.read(new))
        unknown = [name for name in new if name not in self.kept]
        if unknown:
            raise UserError(
                f"no document has the id {unknown[0]!r}: add the document, or leave "
                "the id out"
            )
        rows = [self.kept[name] for name in ids]
        return np.stack(rows) if rows else np.zeros((0, 0), np.float32)

    def read(self, ids: list[str]) -> Iterator[tuple[str, Float[np.ndarray, " d"]]]:
        """The id and the vector of each document with one of these ids, encoded now."""
        chosen = set(ids)
        found = self.encode(each for each in self.source() if each.id in chosen)
        return ((each.id, each.vector) for each in found)

    def shuffled(
        self, ids: Sequence[str], pieces: str, seed: int
    ) -> Float[np.ndarray, "c d"]:
        order = Shuffled(pieces, seed)
        model = dataclasses.replace(self.model, order=order)
        vectors = dataclasses.replace(self, model=model, kept={}).vectors(ids)
        order.check()
        return vectors

    def queries(self, texts: Sequence[str]) -> Float[np.ndarray, "q d"]:
        return self.model.encode_queries_of_any_length(texts)

    def encode(
        self, documents: Iterable[Document], *, passages: bool = False
    ) -> Iterator[Encoded]:
        counts: dict[str, Any] = {}
        yield from self.encode_once(documents, counts, passages=passages)
        if self.warns:
            self.model.warn(counts)

    def encode_once(
        self,
        documents: Iterable[Document],
        counts: dict[str, Any],
        *,
        passages: bool = False,
    ) -> Iterator[Encoded]:
        """As `encode`; `counts` is as in `DocumentModel.encode_once`."""
        return self.model.encode_once(documents, counts, passages=passages)

    def token_attention(self) -> Callable[[str], TokenAttention]:
        segment, params = self.model.encoder.segment, self.model.params["segment"]
        limit = self.model.limits.segment_tokens
        return of_first_token(segment, params, self.model.tokenizer, limit)

    def masked_tokens(
        self, part: str, rate: float, seed: int
    ) -> tuple[float, float, int]:
        model, segments = self.model, self.segments(part)
        masking = Masking.of(model.tokenizer, model.cut.frame, rate)
        return token_loss(model.inference(), model.params, segments, masking, seed)

    def segments(self, part: str) -> Iterator[Segments]:
        """What the model reads of each document of a part."""
        counts: dict[str, int] = {}
        yield from self.model.read(self.documents(part), counts)
        self.model.warn(counts)

    def of_task(self, name: str) -> "FileData":
        if self.folder is None:
            return self
        copy = dataclasses.replace(self, folder=self.folder / name)
        cached = {k: v for k, v in vars(self).items() if k not in vars(copy)}
        vars(copy).update(cached)
        return copy

    def keep(self, name: str, text: str) -> None:
        if self.folder is not None and jax.process_index() == 0:
            write(self.folder, name, text)

    def _predictions(self, vectors: Float[np.ndarray, "c d"]) -> list[str] | None:
        if not self.model.encoder.classifies or not len(vectors):
            return None
        numbers = self.model.inference().predictions(self.model.params, vectors)
        return [self.model.labels[number] for number in numbers]
