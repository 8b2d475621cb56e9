"""What a loss compares: each example has one document or query per slot.

An example is a row of the batch. The classes here choose the documents of the examples;
`docjax.views` turns each document into views.
"""

import dataclasses
import functools
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int

from docjax.data.corpus import Corpus
from docjax.data.pairs import Pair, check_kinds, held_out, linked_pairs, read_pairs
from docjax.errors import UserError
from docjax.types import DOCUMENT, Document

logger = logging.getLogger(__name__)

Related = Callable[[Int[np.ndarray, "b s"]], Bool[np.ndarray, "b m"]]
Neighbours = Mapping[int, Collection[int]]  # for a document the related documents
RELATIONS = (None, "links", "pairs")


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    """The examples of a run; `related` and `labels` are as in `docjax.types.Targets`."""

    kinds: tuple[str, ...]  # DOCUMENT or QUERY: the corpus of each slot
    rows: Int[np.ndarray, "x s"]  # of each example and slot in the slot's corpus
    labels: Int[np.ndarray, " x"]
    related: Related | None = None  # the mask of a batch of rows
    # The documents that stand next to a document in the order of an epoch, if examples
    # are single documents; None: the order is random.
    together: Neighbours | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, kept: Bool[np.ndarray, " x"]) -> "Examples":
        """The examples where `kept` is True."""
        rows, labels = self.rows[kept], self.labels[kept]
        return dataclasses.replace(self, rows=rows, labels=labels)


@dataclasses.dataclass(frozen=True, eq=False)
class Known:
    """The data that examples are made from."""

    run: Path
    source: Callable[[], Iterator[Document]]  # all documents, with their texts
    corpus: Corpus
    queries: Corpus | None  # for examples with a query slot
    documents: Int[np.ndarray, " b"]  # the rows of the documents that training reads
    labels: Int[np.ndarray, " c"]  # the class of each document; -1 without a label
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class Documents:
    """Every training document is an example.

    Attributes:
      related: "links" makes two documents related if one links to the other, "pairs" if
        a table calls them similar.
      path: the table of split, source, target and label, for related "pairs"; read as
        by `Pairs`.
      together: related documents share a batch where they can. A random batch has few.
    """

    related: str | None = None
    path: str | None = None
    together: bool = True
    kinds = (DOCUMENT,)

    def __post_init__(self) -> None:
        if self.related not in RELATIONS:
            raise UserError(
                f"examples.related {self.related!r} is neither 'links' nor 'pairs': "
                "give one of them, or leave examples.related out"
            )

    @property
    def own_relations(self) -> bool:
        return self.related == "links"

    @property
    def independent(self) -> bool:
        return self.related is None

    def files(self) -> tuple[Path, ...]:
        if self.related != "pairs":
            return ()
        if self.path is None:
            raise UserError(
                "examples.related is 'pairs', but there is no table of pairs: give "
                "--config.examples.path=FILE"
            )
        return Pairs(self.path).files()

    def queries(self, source: Callable[[], Iterator[Document]]) -> Iterator[Document]:
        return iter(())

    def among(self, known: Known) -> Examples:
        """One example for each document that training reads. Raises UserError if no two
        of them are related, or for a bad table."""
        rows = known.documents
        own = self.kinds, rows[:, None], known.labels[rows]
        if self.related is None:
            return Examples(*own)
        if self.related == "links":
            neighbours = linked(known.corpus, rows)
        else:
            pairs = Pairs(self.path).among(known).rows
            neighbours = _neighbours(pairs)
            if not neighbours:
                raise UserError(
                    f"examples.related 'pairs': {self.path} has no similar pair of two "
                    "training documents: give a table with such pairs, or leave "
                    "examples.related out"
                )
        related = functools.partial(relation, neighbours)
        return Examples(*own, related, neighbours if self.together else None)


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Pairs of similar documents, and with `dissimilar` of other documents too.

    Attributes:
      path: a table of split, source, target and label, whose pairs of the split "train"
        are read, without those that are held out (`docjax.data.pairs.held_out`). None:
        the pairs of `linked_pairs` among the documents of training.
      dissimilar: False: only similar pairs are examples, with the class of the source. A
        document of the batch is not a negative of a row if any pair that is read calls
        the document similar to the row's document. True: all pairs are examples; the
        label of an example is 1 for a similar pair and 0 for any other pair.
    """

    path: str | None = None
    dissimilar: bool = False
    kinds = (DOCUMENT, DOCUMENT)

    @property
    def labelled_pairs(self) -> bool:
        return self.dissimilar

    @property
    def own_relations(self) -> bool:
        return self.path is None

    def files(self) -> tuple[Path, ...]:
        if self.path is None:
            return ()
        if not Path(self.path).is_file():
            raise UserError(f"examples.path {self.path}: no such file")
        return (Path(self.path),)

    def queries(self, source: Callable[[], Iterator[Document]]) -> Iterator[Document]:
        return iter(())

    def among(self, known: Known) -> Examples:
        """The pairs of which training reads both documents; the others are counted.

        Raises:
          UserError: for a table that is damaged, lacks a kind of pairs that is needed,
            or names unknown documents; without a table, for documents without links.
        """
        name, pairs = self._pairs(known)
        rows = _rows_of(name, pairs, known.corpus.ids)
        similar = np.array([pair.similar for pair in pairs], bool)
        inside = np.isin(rows, known.documents).all(axis=1)
        if not inside.all():
            text = "left out %d of %d pairs: training does not read both documents"
            logger.warning(text, int((~inside).sum()), len(rows))
        if self.dissimilar:
            check_kinds("training", similar[inside])
            return Examples(self.kinds, rows[inside], similar[inside].astype(int))
        related = functools.partial(relation, _neighbours(rows))
        rows = rows[inside]
        return Examples(self.kinds, rows, known.labels[rows[:, 0]], related)

    def _pairs(self, known: Known) -> tuple[str, list[Pair]]:
        """Where the pairs come from, and the pairs of the kinds that are needed."""
        pairs = self._of_table() if self.path else _of_links(known)
        kept = [pair for pair in pairs if pair.similar or self.dissimilar]
        if self.path and len(kept) < len(pairs):
            text = "left out %d pairs with the label 0: training needs similar pairs"
            logger.warning(text, len(pairs) - len(kept))
        return self.path or "links", kept

    def _of_table(self) -> list[Pair]:
        """The pairs of the split "train", of which at least one is similar."""
        (file,) = self.files()
        pairs = read_pairs(file)
        train, chosen = held_out(pairs)
        if chosen:
            text = "%d of %d pairs of the split train are held out, for thresholds"
            logger.info(text, len(chosen), len(chosen) + len(train))
        if not any(pair.similar for pair in train):
            raise UserError(
                f'{file}: no pair of the split "train" has the label 1; its splits are '
                f"{', '.join(pairs)}; add pairs with the label 1"
            )
        return train


def _of_links(known: Known) -> list[Pair]:
    """The pairs with a link among the documents of training, and as many without."""
    ids, links = known.corpus.ids, known.corpus.links
    documents = (
        Document(ids[row], (), links=tuple(ids[target] for target in links[row]))
        for row in known.documents.tolist()
    )
    pairs = linked_pairs(documents, known.seed)
    if not pairs:
        raise UserError(
            "no training document links to another, so there are no pairs: give a table "
            'of pairs with --config.examples.path=FILE, or the documents "links"'
        )
    return pairs


def _rows_of(
    name: str, pairs: Sequence[Pair], ids: Sequence[str]
) -> Int[np.ndarray, "x s"]:
    """The corpus rows of the documents of each pair. Raises UserError for documents
    that are not in the corpus."""
    numbers = {name: row for row, name in enumerate(ids)}
    unknown = sorted({name for pair in pairs for name in pair[:2]} - set(numbers))
    if unknown:
        raise UserError(
            f"{name}: {len(unknown)} of its documents are not in the corpus, "
            f"the first is {unknown[0]!r}: give the source that holds them"
        )
    return np.array([[numbers[name] for name in pair[:2]] for pair in pairs], int)


def _neighbours(rows: Int[np.ndarray, "x s"]) -> Neighbours:
    """The documents that count as similar to each document: itself and its partners."""
    similar: defaultdict[int, set[int]] = defaultdict(set)
    for source, target in rows.tolist():
        similar[source] |= {source, target}
        similar[target] |= {source, target}
    return similar


def linked(corpus: Corpus, documents: Int[np.ndarray, " b"]) -> Neighbours:
    """For each document the documents that it links to or that link to it. Raises
    UserError if none of the documents links to another."""
    links = corpus.links
    neighbours: defaultdict[int, set[int]] = defaultdict(set)
    trained = set(documents.tolist())
    for row in trained:
        for target in trained & set(links[row].tolist()):
            neighbours[row].add(target)
            neighbours[target].add(row)
    if not neighbours:
        raise UserError(
            "examples.related 'links': no training document links to another; give the "
            'documents "links", or leave examples.related out'
        )
    return neighbours


def relation(
    neighbours: Neighbours, rows: Int[np.ndarray, "b s"]
) -> Bool[np.ndarray, "b m"]:
    """Which documents of the batch are neighbours of each example's first document.

    With several slots, the candidates are the documents of all slots after the first,
    slot by slot.
    """
    anchors = rows[:, 0].tolist()
    candidates = rows[:, 1:].T.ravel().tolist() if rows.shape[1] > 1 else anchors
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place, row in enumerate(candidates):
        places[row].append(place)
    mask = np.zeros((len(anchors), len(candidates)), bool)
    for example, row in enumerate(anchors):
        for neighbour in neighbours.get(row, ()):
            mask[example, places.get(neighbour, [])] = True
    return mask
