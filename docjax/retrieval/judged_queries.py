"""Examples of a query, a document that answers it, and documents that do not."""

import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import jax
import numpy as np

from docjax.data.examples import Examples, Known, relation
from docjax.errors import UserError
from docjax.retrieval import bm25, bm25_files, collection, negatives
from docjax.storage.processes import wait
from docjax.types import DOCUMENT, QUERY, Document, Qrels, Section

logger = logging.getLogger(__name__)

UNIFORM = "uniform"
MINED = "negatives.jsonl"  # in the run directory, if the config names no file
TOP = 100  # negatives that the run mines for a query


@dataclasses.dataclass(frozen=True)
class JudgedQueries:
    """One example for each query and document that answers it, with negatives.

    The examples of a batch share their negatives. A document that answers a query is
    never a negative of that query, whichever example the document comes from.

    Attributes:
      path: a collection (`docjax.retrieval.collection`) whose split "train" is read.
        None: the documents' own `query` fields; the document itself answers its query,
        and so do the documents that it links to. Queries of documents that training
        does not read are left out.
      fold: in place of the split "train", the collection's test queries without this
        fold, which tests, and the next one, which chooses. None: the split.
      negatives: a sealed file, as `docjax mine` writes it. "uniform": any documents.
        None: at its start, the run writes BM25's TOP first documents into
        RUN/negatives.jsonl.
      each: the number of negatives of an example, drawn once for the run from all mined
        negatives of its query.
      words: the settings of BM25 when the run mines, see `bm25.preset`.
    """

    path: str | None = None
    fold: int | None = None
    negatives: str | None = None
    each: int = 1
    words: str = "docjax"

    def __post_init__(self) -> None:
        bm25.preset(self.words)  # raises for settings that cannot work
        if self.each < 0:
            raise UserError(f"examples.each {self.each}: give 0 negatives or more")

    @property
    def own_relations(self) -> bool:
        return self.path is None

    @property
    def kinds(self) -> tuple[str, ...]:
        return (QUERY, *(DOCUMENT,) * (1 + self.each))

    def files(self) -> tuple[Path, ...]:
        if self.negatives is None and self.each:
            bm25.libraries()  # raises if they are missing
        named = []
        if self.path is not None:
            named = collection.training_files(self.path, self.fold)
        if self.negatives not in (None, UNIFORM):
            named.append(Path(self.negatives))
        if missing := [file for file in named if not file.is_file()]:
            mend = ""
            if self.negatives and missing[0] == Path(self.negatives):
                mend = f"; give a file of docjax mine as negatives, or {UNIFORM!r}"
            raise UserError(f"examples {missing[0]}: no such file{mend}")
        return tuple(named)

    def queries(self, source: Callable[[], Iterator[Document]]) -> Iterator[Document]:
        texts, _ = self._judged(source)
        for name, text in texts.items():
            yield Document(name, (Section("", text),))

    def among(self, known: Known) -> Examples:
        """The examples whose documents training reads. Raises UserError if there is no
        example, or the file of negatives is damaged or of other documents."""
        texts, qrels = self._judged(known.source)
        rows = {name: row for row, name in enumerate(known.corpus.ids)}
        numbers = {name: row for row, name in enumerate(known.queries.ids)}
        trained = set(known.documents.tolist())
        if self.path is None:
            texts = {name: texts[name] for name in texts if rows[name] in trained}
            qrels = {name: qrels[name] for name in texts}
        answers = {
            query: {rows[name] for name, gain in gains.items() if gain > 0}
            for query, gains in _inside(qrels, rows).items()
        }
        pairs = _pairs(answers, trained, self.path)
        drawn = self._drawn(known, texts, qrels, pairs, rows, trained)
        answered = np.array([(numbers[query], row) for query, row in pairs])
        examples = np.concatenate([answered, drawn], axis=1)
        of_row = {numbers[query]: relevant for query, relevant in answers.items()}
        labels = known.labels[examples[:, 1]]
        return Examples(self.kinds, examples, labels, partial(relation, of_row))

    def _judged(
        self, source: Callable[[], Iterator[Document]]
    ) -> tuple[Mapping[str, str], Qrels]:
        """The texts of the queries, and the documents that answer them."""
        if self.path is None:
            _, texts, qrels = collection.of_documents(source())
            if not texts:
                raise UserError(
                    'no document has a "query": give the documents one, or name a '
                    "collection with --config.examples.path"
                )
            return texts, qrels
        return collection.to_train(self.path, self.fold)

    def _drawn(self, known: Known, texts, qrels, pairs, rows, trained) -> np.ndarray:
        """The rows of each example's negatives: mined ones, or else any document."""
        if not self.each:
            return np.zeros((len(pairs), 0), int)
        mined = {
            query: [rows[name] for name in names if rows[name] in trained]
            for query, names in self._mined(known, texts, qrels).items()
        }
        missing = sum(not mined.get(query) for query, _ in pairs)
        if missing and self.negatives != UNIFORM:
            text = "%d of %d examples have no mined negative among the training "
            logger.warning(f"{text}documents: any is taken", missing, len(pairs))
        generator = np.random.default_rng(known.seed)
        pool = np.array(sorted(trained))
        drawn = np.empty((len(pairs), self.each), int)
        for i, (query, _) in enumerate(pairs):
            ranked = mined.get(query) or pool
            again = len(ranked) < self.each
            drawn[i] = generator.choice(ranked, self.each, replace=again)
        return drawn

    def _mined(self, known: Known, texts, qrels) -> dict[str, list[str]]:
        """The negatives of each query in a file; none for uniform ones."""
        if self.negatives == UNIFORM:
            return {}
        path = Path(self.negatives) if self.negatives else known.run / MINED
        if not self.negatives:
            _mine(path, known, texts, qrels, self.words)
        ids = known.corpus.ids
        read = (ids[row] for row in known.documents.tolist())
        return negatives.read(path, negatives.Trained(set(ids), set(read), texts))


def _mine(
    path: Path, known: Known, texts: Mapping[str, str], qrels: Qrels, words: str
) -> None:
    """Writes BM25's first documents, unless the file fits documents and queries."""
    made_by = f"bm25 {words} {known.queries.fingerprint}"
    if jax.process_index() == 0 and negatives.made_by(path) != made_by:
        settings = bm25.preset(words)
        search = partial(bm25_files.search, known.source(), texts, settings=settings)
        rank = lambda top: search(top=top)
        mined = negatives.mine(rank, qrels, TOP)
        facts = {"documents": negatives.Digest(known.corpus.ids), "made_by": made_by}
        negatives.write(mined, path, queries=texts, **facts)
    wait("negatives")


def _pairs(
    answers: Mapping[str, set[int]], trained: set[int], place: str | None
) -> list[tuple[str, int]]:
    """Each query with each of its answers among the training documents; logs queries
    without such an answer."""
    pairs = [
        (query, row)
        for query, relevant in answers.items()
        for row in sorted(relevant & trained)
    ]
    if not pairs:
        mend = (
            f"the part that training reads must have documents that {place} judges as "
            "answers, by their ids"
            if place
            else 'give them a "query", or name a collection with --config.examples.path'
        )
        raise UserError(f"no query has an answer among the training documents: {mend}")
    if lost := len(answers.keys() - {query for query, _ in pairs}):
        text = "%d of %d queries have no answer among the training documents: left out"
        logger.warning(text, lost, len(answers))
    return pairs


def _inside(qrels: Qrels, rows: Mapping[str, int]) -> Qrels:
    """The judgements of documents that are in the corpus; logs how many are not."""
    kept = {
        query: {name: gain for name, gain in gains.items() if name in rows}
        for query, gains in qrels.items()
    }
    missing = [name for of in qrels.values() for name in of if name not in rows]
    if missing:
        text = "%d judged documents are not in the corpus, %r is the first: left out"
        logger.warning(text, len(missing), missing[0])
    return kept
