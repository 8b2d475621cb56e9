"""Data of tasks without a model: documents with given vectors."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pytest

from docjax.tasks.embeddings import sampled
from docjax.types import Document, Embeddings, Encoded, Section, TokenAttention


class Given:
    """Documents with a vector each; a query has the vector of the word it is."""

    similarity = "dot"

    def __init__(self, documents: Sequence[Document], vectors: np.ndarray, **words):
        self.all, self.words = list(documents), words
        self.by_id = {one.id: row for one, row in zip(documents, vectors, strict=True)}
        self.encoded: list[str] = []
        self.files: dict[str, str] = {}

    def documents(self, part: str) -> Iterator[Document]:
        return (one for one in self.all if one.split == part)

    def sample(self, part: str, most: int | None, seed: int) -> list[Document]:
        return sampled(lambda: self.documents(part), part, most, seed)

    def labels(self, part: str) -> list[str]:
        return [one.label for one in self.documents(part) if one.label is not None]

    def labelled(self, part: str) -> Embeddings:
        ids = [one.id for one in self.documents(part) if one.label is not None]
        return Embeddings(self.vectors(ids), self.labels(part))

    def missing(self, ids: Iterable[str]) -> list[str]:
        return sorted(set(ids).difference(self.by_id))

    def vectors(self, ids: Sequence[str]) -> np.ndarray:
        self.encoded += ids
        return np.stack([self.by_id[name] for name in ids])

    def shuffled(self, ids: Sequence[str], pieces: str, seed: int) -> np.ndarray:
        """One vector: shuffled documents cannot be told apart."""
        assert pieces in ("sections", "segments") and seed >= 0
        return np.ones_like(self.vectors(ids))

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([np.array(self.words[text], np.float32) for text in texts])

    def token_attention(self) -> Callable[[str], TokenAttention]:
        """A token attends to each word of a text as much as the word is long."""

        def attend(text: str) -> TokenAttention:
            spans = [match.span() for match in re.finditer(r"\w+", text)]
            weights = [(end - start) / 100 for start, end in spans]
            return TokenAttention(np.array(weights), np.array(spans).reshape(-1, 2))

        return attend

    def masked_tokens(
        self, part: str, rate: float, seed: int
    ) -> tuple[float, float, int]:
        raise NotImplementedError

    def of_task(self, name: str) -> "Given":
        return self

    def keep(self, name: str, text: str) -> None:
        self.files[name] = text

    def encode(
        self, documents: Iterable[Document], *, passages: bool = False
    ) -> Iterator[Encoded]:
        """The best passage of a document has its vector backwards."""
        for one in documents:
            vector = self.by_id[one.id]
            parts = np.stack([vector[::-1] - 1, vector[::-1]]) if passages else None
            yield Encoded(one.id, vector, parts)


@pytest.fixture(scope="session")
def given() -> type[Given]:
    return Given


@pytest.fixture(scope="session")
def document():
    """Makes a document of an id, a text, and whatever else is given."""

    def make(name: str, text: str = "words", split: str = "test", **others) -> Document:
        return Document(name, (Section("", text),), split=split, **others)

    return make
