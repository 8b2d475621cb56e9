"""What a loss compares: for each example, one document or query a slot.

An example is a row of the batch. A class here says which documents are examples; what
becomes of each document is said by `docjax.views`.
"""

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from absl import logging
from jaxtyping import Bool, Int

from docjax.data.corpus import Corpus
from docjax.data.pairs import read_pairs
from docjax.errors import UserError
from docjax.types import DOCUMENT, Document

Related = Callable[[Int[np.ndarray, "b s"]], Bool[np.ndarray, "b m"]]


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    """The examples of a run.

    Attributes:
      kinds: of each slot, DOCUMENT or QUERY: the corpus that its rows are of.
      rows: of each example, the row of each slot in its corpus.
      labels: the class number of each example, -1 without.
      related: the relation mask of some of the rows, see `docjax.types.Targets`.
    """

    kinds: tuple[str, ...]
    rows: Int[np.ndarray, "x s"]
    labels: Int[np.ndarray, " x"]
    related: Related | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, kept: Bool[np.ndarray, " x"]) -> "Examples":
        """The examples that are `kept`."""
        rows, labels = self.rows[kept], self.labels[kept]
        return dataclasses.replace(self, rows=rows, labels=labels)


@dataclasses.dataclass(frozen=True, eq=False)
class Known:
    """What examples are made of.

    Attributes:
      run: the run directory.
      source: gives the documents again, with their texts.
      corpus: all documents.
      queries: a corpus of queries, for examples with a slot for them.
      documents: the rows of the documents that training reads.
      labels: the class number of each document of the corpus, -1 without.
      seed: of what is drawn.
    """

    run: Path
    source: Callable[[], Iterator[Document]]
    corpus: Corpus
    queries: Corpus | None
    documents: Int[np.ndarray, " b"]
    labels: Int[np.ndarray, " c"]
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class Documents:
    """Every training document is an example.

    related: "links" says of documents that link to each other that they are related.
    """

    related: str | None = None
    kinds = (DOCUMENT,)

    def __post_init__(self) -> None:
        if self.related not in (None, "links"):
            raise UserError(
                f"examples.related {self.related!r}: documents are related by 'links', "
                "or leave it out"
            )

    def files(self) -> tuple[Path, ...]:
        """The documents alone say which examples there are."""
        return ()

    def queries(self, source: Callable[[], Iterator[Document]]) -> Iterator[Document]:
        """There are no queries."""
        return iter(())

    def among(self, known: Known) -> Examples:
        """One example for each document that training reads."""
        rows = known.documents
        related = linked(known.corpus, rows) if self.related else None
        return Examples(self.kinds, rows[:, None], known.labels[rows], related)


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Pairs of similar documents, from a table of split, source, target and label.

    A document of the batch that any pair calls similar to a row's document is no
    negative of that row.
    """

    path: str | None = None
    kinds = (DOCUMENT, DOCUMENT)

    def files(self) -> tuple[Path, ...]:
        """The table. Raises UserError if it is missing."""
        if self.path is None:
            raise UserError("Pairs needs a table of pairs: --config.examples.path=FILE")
        if not Path(self.path).is_file():
            raise UserError(f"pairs {self.path}: no such file")
        return (Path(self.path),)

    def queries(self, source: Callable[[], Iterator[Document]]) -> Iterator[Document]:
        """There are no queries."""
        return iter(())

    def among(self, known: Known) -> Examples:
        """The similar pairs of the split "train", with the label of the source.

        Pairs of documents that training does not read are left out.

        Raises:
          UserError: for a damaged table, one without such pairs, and one that names
            unknown documents.
        """
        rows = np.array(self._rows(known.corpus.ids), int).reshape(-1, 2)
        similar: defaultdict[int, set[int]] = defaultdict(set)
        for one, other in rows.tolist():
            similar[one] |= {one, other}
            similar[other] |= {one, other}
        inside = np.isin(rows, known.documents).all(axis=1)
        if not inside.all():
            logging.warning(
                "%d of %d pairs have a document that is not trained on: left out",
                int((~inside).sum()),
                len(rows),
            )
        rows = rows[inside]
        related = functools.partial(relation, similar)
        return Examples(self.kinds, rows, known.labels[rows[:, 0]], related)

    def _rows(self, ids: Sequence[str]) -> list[list[int]]:
        """The two rows of each similar pair of the split "train"."""
        (file,) = self.files()
        pairs = read_pairs(file)
        train = pairs.get("train", [])
        names = [(pair.source, pair.target) for pair in train if pair.similar]
        if not names:
            raise UserError(
                f'{file}: no pair of the split "train" has the label 1; its splits are '
                f"{', '.join(pairs)}"
            )
        if len(names) < len(train):
            different = len(train) - len(names)
            logging.warning("%d pairs have the label 0: not trained on", different)
        rows = {name: row for row, name in enumerate(ids)}
        unknown = sorted({name for pair in names for name in pair} - set(rows))
        if unknown:
            raise UserError(
                f"{file}: {len(unknown)} of its documents are not in the corpus, "
                f"{unknown[0]!r} is the first: give the source that holds them"
            )
        return [[rows[name] for name in pair] for pair in names]


def linked(corpus: Corpus, documents: Int[np.ndarray, " b"]) -> Related:
    """Two documents are related if one links to the other, in either direction.

    Raises:
      UserError: if none of the documents links to another.
    """
    links = corpus.links
    neighbours: defaultdict[int, set[int]] = defaultdict(set)
    read = set(documents.tolist())
    for row in read:
        for other in read & set(links[row].tolist()):
            neighbours[row].add(other)
            neighbours[other].add(row)
    if not neighbours:
        raise UserError(
            "examples.related 'links': no training document links to another; give the "
            'documents "links", or leave examples.related out'
        )
    return functools.partial(relation, neighbours)


def relation(
    neighbours: Mapping[int, Collection[int]], rows: Int[np.ndarray, "b s"]
) -> Bool[np.ndarray, "b m"]:
    """Which documents of the batch are neighbours of each example's first document.

    For several slots the candidates are the documents of all slots but the first,
    slot after slot.
    """
    own = rows[:, 0].tolist()
    candidates = rows[:, 1:].T.ravel().tolist() if rows.shape[1] > 1 else own
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place, row in enumerate(candidates):
        places[row].append(place)
    mask = np.zeros((len(own), len(candidates)), bool)
    for example, row in enumerate(own):
        for other in neighbours.get(row, ()):
            mask[example, places.get(other, [])] = True
    return mask
