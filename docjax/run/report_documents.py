"""What the report shows of a sample of documents: clusters, neighbours, a map.

The clusters are those of k-means on the vectors that the run ended with. Nothing is
chosen by hand: the documents whose neighbours are shown lie evenly in the sample.
"""

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from docjax.data.records import full_text
from docjax.data.splits import spread
from docjax.errors import UserError
from docjax.explain import figures
from docjax.explain.run_page import Cluster, Named, Neighbours
from docjax.model.cosines import cosines, unit
from docjax.run.baselines import TfIdf
from docjax.tasks.clustering import assign
from docjax.types import AFTER, Document

CLUSTERS = 10  # of documents without labels
RESTARTS = 10  # of k-means
WORDS, TITLES = 8, 3  # of a cluster
CHOSEN, NEAREST = 6, 3  # documents, and neighbours of each
TITLE = 14  # words of a text without a title
LEAST = 5  # documents to show anything of


@dataclasses.dataclass(frozen=True)
class Sample:
    """Some documents of a run, and their vectors by name, AFTER among them."""

    documents: Sequence[Document]
    vectors: Mapping[str, Float[np.ndarray, "c d"]]
    tfidf: TfIdf | None  # fitted to training documents; None without common words

    @property
    def named(self) -> list[Named]:
        return [Named(_title(each), each.label or "") for each in self.documents]


def clusters(sample: Sample) -> list[Cluster]:
    """The clusters, largest first, with the words and titles that tell them apart.

    Raises UserError for fewer than LEAST documents.
    """
    count = len(sample.documents)
    if count < LEAST:
        raise UserError(f"{count} documents are too few for clusters")
    assigned = _assigned(sample)
    texts = [full_text(each) for each in sample.documents]
    weights = sample.tfidf(texts) if sample.tfidf else None
    shown = [_cluster(sample, assigned == i, weights) for i in np.unique(assigned)]
    return sorted(shown, key=lambda each: -each.documents)


def neighbours(sample: Sample) -> list[Neighbours]:
    """Some documents, each with its nearest ones by each kind of vectors."""
    named, count = sample.named, len(sample.documents)
    if count < LEAST:
        raise UserError(f"{count} documents are too few for neighbours")
    chosen, nearest = _chosen(named), {}
    for name, vectors in sample.vectors.items():
        similarities = cosines(vectors[chosen], vectors)
        similarities[np.arange(len(chosen)), chosen] = -np.inf
        nearest[name] = np.argsort(-similarities, axis=1, kind="stable")[:, :NEAREST]
    return [
        Neighbours(
            named[row],
            {name: [named[i] for i in rows[at]] for name, rows in nearest.items()},
        )
        for at, row in enumerate(chosen)
    ]


def _chosen(named: Sequence[Named]) -> list[int]:
    """The middle document of each label, or of each CHOSENth of the sample if there are
    no labels; at most CHOSEN, evenly."""
    labels = np.array([each.label for each in named])
    parts = [np.flatnonzero(labels == name) for name in np.unique(labels)]
    if len(parts) == 1:
        parts = np.array_split(parts[0], CHOSEN)
    middle = np.array([part[len(part) // 2] for part in parts if len(part)])
    return spread(middle, CHOSEN).tolist()


def draw_map(sample: Sample, path: Path) -> Path:
    """Draws t-SNE of each kind of vectors, coloured by label, or else by cluster."""
    labels = [each.label for each in sample.documents]
    if None in labels:
        labels = [f"cluster {number + 1}" for number in _assigned(sample)]
    ids = [each.id for each in sample.documents]
    return figures.tsne_panels(path, sample.vectors, labels, ids=ids)


def _assigned(sample: Sample) -> Int[np.ndarray, " c"]:
    """The number of the cluster of each document."""
    labels, vectors = {d.label for d in sample.documents}, sample.vectors[AFTER]
    wanted = CLUSTERS if None in labels else len(labels)
    count = max(min(wanted, len(vectors) // 2), 1)
    return assign(vectors, vectors, count, RESTARTS, seed=0)


def _cluster(sample: Sample, inside: np.ndarray, weights: Any) -> Cluster:
    """The cluster of the documents that `inside` marks; weights: TF-IDF [c w]."""
    rows, named = np.flatnonzero(inside), sample.named
    vectors = unit(sample.vectors[AFTER][rows])
    typical = rows[np.argsort(-(vectors @ vectors.mean(axis=0)), kind="stable")]
    titles = dict.fromkeys(named[row].title for row in typical)
    labels = collections.Counter(named[row].label for row in rows)
    [(label, most)] = labels.most_common(1)
    return Cluster(
        documents=len(rows),
        label=label,
        share=most / len(rows),
        words=_words(sample.tfidf, weights, inside) if sample.tfidf else (),
        titles=list(titles)[:TITLES],
    )


def _words(tfidf: TfIdf, weights: Any, inside: np.ndarray) -> list[str]:
    """The words whose mean weight is highest above that of the other documents."""
    mean = lambda rows: np.asarray(weights[rows].mean(axis=0)).ravel()
    above = mean(inside) - (0 if inside.all() else mean(~inside))
    best = [i for i in np.argsort(-above, kind="stable")[:WORDS] if above[i] > 0]
    return tfidf.words[best].tolist()


def _title(document: Document) -> str:
    """The title, or the first words of the text."""
    if document.title.strip():
        return document.title
    words = full_text(document).split()
    return " ".join(words[:TITLE]) + (" …" if len(words) > TITLE else "")
