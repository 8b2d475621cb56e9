"""Are the documents that answer a query at the top? By words, by vectors, by both.

Metrics are means over the queries that have an answer, all in [0, 1]; the systems are
those of `docjax.retrieval.systems`.
"""

import dataclasses
import functools
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from docjax.errors import UserError
from docjax.retrieval import (
    bm25,
    bm25_files,
    collection,
    fusion,
    measures,
    systems,
    trec,
)
from docjax.retrieval.collection import Collection
from docjax.retrieval.folds import Folds
from docjax.retrieval.measures import BySystem
from docjax.retrieval.systems import Systems
from docjax.tasks import kept_rankings
from docjax.tasks.task import TaskDefaults, option
from docjax.types import (
    AFTER,
    Document,
    Encoded,
    Qrels,
    Rankings,
    Rows,
    Run,
    Table,
    TaskData,
)

logger = logging.getLogger(__name__)

METRICS = (  # the columns of the report
    *("ndcg@10", "ndcg@20", "p@5", "p@10", "p@20", "mrr@100", "map"),
    *("recall@100", "recall@1000", "weight"),
)
NOTE = (
    "Means over the test queries, as trec_eval computes them. bm25 ranks by words, dense "
    "by the documents' vectors, maxp and maxsim by the best passages; fused adds words "
    "and vectors with a weight that other queries have chosen (weight: the share of the "
    "vectors), rrf by ranks."
)
PUBLISHED = (
    "Rows marked (published) are the paper's, of its own collection, queries and folds. "
    "Its metrics may come from different sets of queries; the docstring of the config "
    "says which."
)


@dataclasses.dataclass(frozen=True)
class Retrieval(TaskDefaults):
    """`retrieval` from a collection, or from the documents of a part.

    It ranks by words, by vectors and by both. For `docjax evaluate` MODEL may also be a
    TREC run (FILE.trec); then only the judgements of --data are read.

    Attributes:
      path: a collection (`docjax.retrieval.collection`). For the part "test", its test
        queries are scored; for "validation", those of another split. None: every
        document of the part with a `query` gives one query. The candidates are all
        documents of the part. The document itself is relevant with grade 2, the
        candidates that it links to with grade 1.
      max_bad_fraction: the share of the collection's documents that may be bad, and are
        then left out.
      fold: tests on this fold of the collection's queries alone, and chooses the weight
        on the next fold. None: all test queries.
      passages: also ranks by passages.
      words: the settings of BM25, see `bm25.preset`.
      scale: of the fusion, "min-max" or "raw". Raw scores of BM25 lack the factor k1 + 1
        that many programs have: a weight from elsewhere does not fit them.
      compare: one of the systems or a TREC run: the other systems' gains over it on the
        test queries, with intervals (`docjax.retrieval.paired`).
    """

    command = "retrieval"
    reads = "collection"
    keeps = "the TREC runs of all systems and the metrics of each query"
    curves = (f"dense/{measures.TUNED}",)
    suffix = ".trec"

    path: str | None = None
    max_bad_fraction: float = 0.0
    fold: int | None = option(
        None,
        "test on this fold of the test queries alone; the next fold chooses the weight "
        "of the fusion",
        type=int,
    )
    passages: bool = option(
        False, "also rank by the best passages", action="store_true"
    )
    words: str = option(
        "docjax", f"settings of BM25: {', '.join(bm25.PRESETS)}, or a JSON object"
    )
    scale: str = option(
        "min-max",
        "of the fused scores: min-max or raw (BM25 without the factor k1 + 1)",
    )
    compare: str | None = option(None, "bm25, dense, ... or RUN.trec", metavar="SYSTEM")

    def check(self, data: TaskData, part: str) -> None:
        measures.ir_measures()
        bm25.libraries()
        bm25.preset(self.words)
        fusion.check_scale(self.scale)
        file = _file(self.compare)
        if file and not file.exists():
            raise UserError(
                f"compare {file}: no such file; give a TREC run or one of "
                f"{', '.join(systems.NAMES)}"
            )
        compared = trec.read(file) if file else None  # raises if it cannot be read
        if self.compare in systems.OF_PASSAGES and not self.passages:
            raise UserError(
                f"compare {self.compare}: needs passages: set passages=True (--passages)"
            )
        if self.path is not None:
            judged = collection.read(self.path, self.fold)
            test, tuning = _judgements(judged, part)
            if not tuning:
                fusion.to_validate(list(test), _folds(judged, part))
            _check_judged(judged, test, tuning, self.max_bad_fraction)
            if compared is not None and part == "test":
                measures.check_queries(f"compare {file}", compared, test)
            return
        with_query = (document for document in data.documents(part) if document.query)
        count = len(list(itertools.islice(with_query, 2)))
        if count < 2:
            raise UserError(
                f'{count} {part} documents have a "query", retrieval needs 2 or more: '
                "give source documents a query, or the task a collection (path)"
            )

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        if self.path is not None:
            return self._of_collection(data, part)
        ids, queries, qrels = collection.of_documents(data.documents(part))
        if self.passages:
            encoded = data.encode(data.documents(part), passages=True)
        else:  # other tasks may have encoded them already
            encoded = map(Encoded, ids, data.vectors(ids))
        runs = self._runs(data, part, queries, data.documents(part), encoded)
        ranked = systems.fused(runs, qrels, scale=self.scale)
        return self._scored(data, part, queries, qrels, ranked)

    def is_score(self, metric: str) -> bool:
        """One metric of each system; a table of its own has the others."""
        return metric.endswith(f"/{measures.TUNED}")

    def tables(self, measured: Rows, published: Rows) -> list[Table]:
        rows: dict[str, dict[str, float]] = {}
        for name, value in measured.get(AFTER, {}).items():
            system, _, metric = name.partition("/")
            if metric in METRICS:
                rows.setdefault(system, {})[metric] = value
        rows |= {name: dict(row) for name, row in published.items()}
        others = dict.fromkeys(name for row in rows.values() for name in row)
        columns = dict.fromkeys((*METRICS, *others))
        note = f"{NOTE} {PUBLISHED}" if published else NOTE
        return [Table("Systems", rows, tuple(columns), note, "system")]

    def rankings(self, folder: Path) -> Rankings | None:
        documents = None if self.path is None else self._documents
        return kept_rankings.read(folder, documents)

    def of_file(
        self, file: Path, keep: Callable[[str, str], None] | None
    ) -> dict[str, float]:
        """`run/METRIC` of a TREC run, in place of a model; only judgements are read.

        `compare` is another TREC run. Raises UserError for a run that cannot be read or
        has none of the queries, and for an option that a run has no use for.
        """
        if not file.is_file():
            raise UserError(f"{file}: no such file; give a TREC run or a model")
        for name in ("passages", "words", "scale"):
            if getattr(self, name) != getattr(type(self), name):
                raise UserError(
                    f"--{name} does nothing to {file}, which is a run: leave it out"
                )
        if self.compare in systems.NAMES:
            raise UserError(
                f"--compare {self.compare}: {file} is a run and has no other systems; "
                "give a TREC run, or a model in place of the run"
            )
        qrels = collection.read_test(self.path, self.fold)
        files = {"run": file}
        if self.compare:
            files[measures.COMPARED] = Path(self.compare)
        runs = {name: measures.read(path, qrels) for name, path in files.items()}
        for name, path in files.items():
            measures.check_queries(str(path), runs[name], qrels)
        values = measures.of_systems(runs, qrels)
        if keep is not None:
            keep("queries.jsonl", kept_rankings.by_query(qrels, values))
        return measures.means(values, self.compare and measures.COMPARED)

    def _documents(self) -> Iterator[Document]:
        return collection.opened(self.path).reader()(self.max_bad_fraction)

    def _of_collection(self, data: TaskData, part: str) -> dict[str, float]:
        judged = collection.read(self.path, self.fold)
        test, tuning = _judgements(judged, part)
        names = {*test, *tuning}
        queries = {name: text for name, text in judged.queries.items() if name in names}
        documents = functools.partial(judged.documents, self.max_bad_fraction)
        encoded = data.encode(documents(), passages=self.passages)
        runs = self._runs(data, part, queries, documents(), encoded)
        folds = _folds(judged, part)
        ranked = systems.fused(runs, test, tuning, folds=folds, scale=self.scale)
        return self._scored(data, part, queries, test, ranked)

    def _scored(
        self,
        data: TaskData,
        part: str,
        queries: Mapping[str, str],
        qrels: Qrels,
        ranked: Systems,
    ) -> dict[str, float]:
        values = measures.of_systems(ranked.runs, qrels)
        if part == "test":
            kept_rankings.keep(data, queries, qrels, ranked.runs, ranked.curves, values)
        compare = self.compare if part == "test" else None
        return scores(ranked, values, qrels, compare)

    @functools.cached_property
    def _by_words(self) -> dict[str, Run]:
        """BM25's ranking of each part, which is the same at every evaluation."""
        return {}

    def _runs(
        self,
        data: TaskData,
        part: str,
        queries: Mapping[str, str],
        documents: Iterable[Document],
        encoded: Iterable[Encoded],
    ) -> dict[str, Run]:
        """The documents of each query, ranked by BM25 and by vectors. Raises UserError
        for a query or a document whose vectors are not finite."""
        # Encoded first, since this may raise.
        vectors = systems.read_queries(queries, data.queries, self.passages)
        settings = bm25.preset(self.words)
        if part not in self._by_words:
            self._by_words[part] = bm25_files.search(
                documents, queries, top=fusion.TOP, settings=settings
            )
        cosine = data.similarity == "cosine"
        of_vectors = systems.by_vectors(
            list(queries), vectors, encoded, fusion.TOP, cosine=cosine
        )
        return {"bm25": self._by_words[part]} | of_vectors


def _folds(judged: Collection, part: str) -> Folds:
    """The folds that choose the fusion's weight; empty: they are drawn."""
    return judged.folds if part == "test" else ()


def _judgements(judged: Collection, part: str) -> tuple[Qrels, Qrels]:
    """The judgements to score, and the judgements to choose the fusion's weight by."""
    if part == "test":
        return judged.test, judged.tuning
    if not judged.tuning:
        raise UserError(
            f"{judged.name} has no queries for a {part} metric: give another split "
            "(qrels/dev.tsv) or 20 training queries, of which two choose, or leave "
            "keep and splits.validation out"
        )
    return judged.tuning, {}


def _check_judged(
    judged: Collection, test: Qrels, tuning: Qrels, max_bad_fraction: float
) -> None:
    """Raises UserError if all judged documents are missing; warns if some are."""
    names = set().union(*test.values(), *tuning.values())
    missing = names.difference(
        document.id for document in judged.documents(max_bad_fraction)
    )
    if missing:
        text = f"{len(missing)} of {len(names)} judged documents are not in the corpus"
        text += f", {min(missing)!r} is one"
        if missing == names:
            raise UserError(f"{judged.name}: {text}; add them")
        logger.warning("%s: no system can find them", text)


def scores(
    ranked: Systems, values: BySystem, test: Qrels, compare: str | None = None
) -> dict[str, float]:
    """`SYSTEM/METRIC` of every system for each metric of `measures.METRICS`.

    Also `FUSED/weight` of each fused system, the share of the vectors, in the mean of
    the queries.

    Args:
      values: `measures.of_systems` of the ranked runs.
      compare: as in `Retrieval`: adds `SYSTEM/METRIC_gain` and its interval; a TREC run
        is the system "compared".

    Raises:
      UserError: for a run that cannot be read.
    """
    base = compare
    if file := _file(compare):
        base = measures.COMPARED
        run = measures.read(file, test)
        values = values | measures.of_systems({base: run}, test)
    weights = {
        f"{name}/weight": sum(of.values()) / len(of)
        for name, of in ranked.weights.items()
    }
    return measures.means(values, base) | weights


def _file(compare: str | None) -> Path | None:
    """The TREC run that `compare` names; None for a system."""
    return None if compare in (None, *systems.NAMES) else Path(compare)
