"""Are the sentences of one document more similar than those of two?

SimLTE and DocSplit, section 5: the means of the cosines of both kinds of pairs.
"""

import dataclasses

import numpy as np
from jaxtyping import Float, Int
from sklearn.preprocessing import normalize

from docjax.data.records import full_text
from docjax.data.sentences import sentences
from docjax.errors import UserError
from docjax.retrieval import finite
from docjax.tasks.task import TaskDefaults, option, renamed
from docjax.types import Document, Rows, Section, Table, TaskData


@dataclasses.dataclass(frozen=True)
class SentenceSimilarity(TaskDefaults):
    """`similarities` of the sentences of a sample; a sentence is read as a document."""

    command = "sentence_similarity"
    on_baselines = False

    most: int | None = option(1000, "documents to read (1000)", name="sample", type=int)
    pairs: int = 10_000  # of sentences of two documents, drawn at random
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pairs < 1:
            raise UserError(f"pairs={self.pairs} of sentences: give 1 or more")

    def check(self, data: TaskData, part: str) -> None:
        data.sample(part, self.most, self.seed)

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        documents = data.sample(part, self.most, self.seed)
        pieces: list[Document] = []
        counts = []
        for document in documents:
            texts = sentences(full_text(document))
            texts = [text for text in texts if any(map(str.isalnum, text))]
            counts.append(len(texts))
            for number, text in enumerate(texts):
                name = f"{document.id}, sentence {number}"
                pieces.append(Document(name, (Section("", text),)))
        if not pieces:
            raise UserError(
                f"{len(documents)} {part} documents have no sentence with a letter or "
                "a digit: give documents with text"
            )
        encoded = finite.checked(data.encode(pieces))
        vectors = np.stack([each.vector for each in encoded])
        counts = np.array([count for count in counts if count])
        return similarities(vectors, counts, self.pairs, self.seed)

    def is_score(self, metric: str) -> bool:
        return False

    def tables(self, measured: Rows, published: Rows) -> list[Table]:
        rows = renamed({**measured, **published}, {"inner": "inner", "inter": "inter"})
        note = (
            "Mean cosine of two sentences of one document (inner) and of two documents "
            "(inter)."
        )
        return [Table("Similarity of sentences", rows, note=note, decimals=2)]


def similarities(
    vectors: Float[np.ndarray, "n d"],
    counts: Int[np.ndarray, " c"],
    pairs: int,
    seed: int,
) -> dict[str, float]:
    """`inner`, the mean cosine of the sentences of one document, and `inter`, of two.

    `inner` is the mean over documents of the mean over all pairs of their sentences.
    For `inter` two documents are drawn, and a sentence of each.

    Args:
      vectors: of the sentences of the first document, of the second, and so on.
      counts: the number of sentences of each document, at least 1.

    Raises:
      UserError: unless a document has two sentences, and there are two documents.
    """
    several = counts > 1
    if not several.any() or len(counts) < 2:
        raise UserError(
            f"{several.sum()} of {len(counts)} documents have two sentences or more: "
            "pairs within one document and between two are needed"
        )
    vectors, first = normalize(vectors), np.cumsum(counts) - counts
    sums, itself = (np.add.reduceat(x, first) for x in (vectors, (vectors**2).sum(1)))
    # The square of a sum holds each sentence with itself, and each pair twice.
    within = ((sums**2).sum(1) - itself)[several] / (counts * (counts - 1))[several]
    generator = np.random.default_rng(seed)
    a = generator.integers(len(counts), size=pairs)
    b = (a + generator.integers(1, len(counts), size=pairs)) % len(counts)
    a, b = (first[x] + generator.integers(counts[x]) for x in (a, b))
    between = (vectors[a] * vectors[b]).sum(1)
    return {"inner": float(within.mean()), "inter": float(between.mean())}
