"""Are the documents that answer a query at the top? By words, by vectors, by both.

Metrics are those of trec_eval, by ir-measures: means over the queries that have an
answer, all in [0, 1].
"""

import dataclasses
import functools
import itertools
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

import numpy as np

from docjax.errors import UserError
from docjax.retrieval import bm25, collection, fusion, index, paired, trec
from docjax.retrieval.collection import Collection
from docjax.types import Document, Qrels, Run, TaskData

METRICS = {
    "ndcg@10": "nDCG@10",
    "ndcg@20": "nDCG@20",
    "p@5": "P@5",
    "p@10": "P@10",
    "p@20": "P@20",
    "mrr@10": "RR@10",
    "mrr@100": "RR@100",
    "map": "AP",
    "recall@100": "R@100",
    "recall@1000": "R@1000",
}
SYSTEMS, OTHER = ("bm25", "dense", "fused"), "compared"
TUNED = "ndcg@10"  # the metric that chooses the weight of the fusion

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Retrieval:
    """`retrieval` from a collection, or from the documents of a part.

    Attributes:
      path: a folder in BEIR's layout (`docjax.retrieval.collection`). For the part
        "test", its test queries are scored; for "validation", those of another split.
        None: every document of the part with a `query` gives one query. The candidates
        are all documents of the part. The document itself is relevant with grade 2,
        the candidates that it links to with grade 1.
      max_bad_fraction: the share of the folder's documents that may be bad, and are
        then left out.
      compare: "bm25", "dense", "fused" or a TREC run: the other systems' gains over it,
        with intervals (`docjax.retrieval.paired`).
    """

    path: str | None = None
    max_bad_fraction: float = 0.0
    compare: str | None = None

    def check(self, data: TaskData, part: str) -> None:
        """Raises UserError for a missing library, for too few queries or no answers."""
        ir_measures()
        bm25.libraries()
        _compared(self.compare)
        if self.path is not None:
            judged = collection.read(Path(self.path))
            _check_judged(judged, *_judgements(judged, part), self.max_bad_fraction)
            return
        with_query = (document for document in data.documents(part) if document.query)
        count = len(list(itertools.islice(with_query, 2)))
        if count < 2:
            raise UserError(
                f'{count} {part} documents have a "query", retrieval needs 2 or more: '
                "give source documents a query, or the task a BEIR folder (path)"
            )

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        if self.path is not None:
            return self._of_folder(data, part)
        ids, queries, qrels = collection.of_documents(data.documents(part))
        vectors = zip(ids, data.vectors(ids), strict=True)
        dense, by_words = _runs(data, queries, data.documents(part), vectors)
        return retrieval(dense, by_words, qrels, compare=self.compare)

    def _of_folder(self, data: TaskData, part: str) -> dict[str, float]:
        judged = collection.read(Path(self.path))
        test, tuning = _judgements(judged, part)
        names = {*test, *tuning}
        queries = {name: text for name, text in judged.queries.items() if name in names}
        documents = functools.partial(judged.documents, self.max_bad_fraction)
        vectors = data.encode(documents())
        dense, by_words = _runs(data, queries, documents(), vectors)
        return retrieval(dense, by_words, test, tuning, compare=self.compare)


def _runs(
    data: TaskData,
    queries: Mapping[str, str],
    documents: Iterable[Document],
    vectors: Iterable[tuple[str, np.ndarray]],
) -> tuple[Run, Run]:
    """The documents of each query ranked by vectors, and by BM25."""
    query_vectors = data.queries(list(queries.values()))  # first, since this may raise
    by_words = bm25.search(documents, queries)
    cosine = data.similarity == "cosine"
    by_vectors = index.nearest(
        list(queries), query_vectors, vectors, fusion.TOP, cosine=cosine
    )
    return by_vectors, by_words


def _judgements(judged: Collection, part: str) -> tuple[Qrels, Qrels]:
    """The judgements to score, and the judgements to choose the fusion's weight by."""
    if part == "test":
        return judged.test, judged.tuning
    if not judged.tuning:
        raise UserError(
            f"{judged.corpus.parent}/qrels has only the test queries: a {part} metric "
            "needs another split (dev.tsv), or leave splits.validation out"
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
        if missing == names:
            raise UserError(
                f"{judged.corpus}: {text}, {min(missing)!r} is one; add them"
            )
        logger.warning("%s: no system can find them", text)


def retrieval(
    dense: Run,
    bm25: Run,
    test: Qrels,
    tuning: Qrels | None = None,
    *,
    compare: str | None = None,
) -> dict[str, float]:
    """`SYSTEM/METRIC` of bm25, dense and fused for each metric of METRICS.

    Also `fused/weight`, the share of `dense`, which is chosen on the queries of
    `tuning`. Without these, it is the mean of a cross-validation over `test`.
    `compare` as in `Retrieval` adds `SYSTEM/METRIC_gain` and its interval; a TREC run
    is the system "compared".

    Raises:
      UserError: if ir-measures is not installed, for a single query, and for a run that
        cannot be read.
    """
    score = functools.partial(of_queries, metric=TUNED)
    if tuning:
        weight = fusion.best_weight(
            dense, bm25, list(tuning), functools.partial(score, tuning)
        )
        weights = dict.fromkeys(test, weight)
    else:
        weights = fusion.cross_validated(
            dense, bm25, list(test), functools.partial(score, test)
        )
    fused = fusion.fuse(dense, bm25, weights)
    systems = {"bm25": bm25, "dense": dense, "fused": fused} | _compared(compare)
    base = compare if compare in (None, *SYSTEMS) else OTHER
    scores = of_systems(systems, test, base)
    return {**scores, "fused/weight": sum(weights.values()) / len(weights)}


def of_systems(
    systems: Mapping[str, Run], qrels: Qrels, base: str | None = None
) -> dict[str, float]:
    """`SYSTEM/METRIC` of each system, and the gains over the system `base`.

    Raises:
      UserError: for a system that ranks documents for none of the queries.
    """
    for system, run in systems.items():
        _check_queries(system, run, qrels)
    by_query = {
        system: {metric: of_queries(qrels, run, metric) for metric in METRICS}
        for system, run in systems.items()
    }
    scores = {}
    for system, values in by_query.items():
        for metric, of_query in values.items():
            scores[f"{system}/{metric}"] = sum(of_query.values()) / len(of_query)
            if base not in (None, system):
                gains = paired.gain(of_query, by_query[base][metric])
                scores |= {f"{system}/{metric}_{k}": v for k, v in gains.items()}
    return scores


def _check_queries(system: str, run: Run, qrels: Qrels) -> None:
    missing = len(qrels.keys() - run.keys())
    if missing == len(qrels):
        raise UserError(f"{system}: none of its queries is one of the test queries")
    if missing:
        text = "%s has no documents for %d of %d test queries: they count as 0"
        logger.warning(text, system, missing, len(qrels))


def _compared(compare: str | None) -> dict[str, Run]:
    """The TREC run `compare` under the name OTHER; nothing for None and a system."""
    if compare in (None, *SYSTEMS):
        return {}
    return {OTHER: trec.read(Path(compare))}


def of_file(folder: Path, run: Path, compare: str | None = None) -> dict[str, float]:
    """`run/METRIC` of a TREC run on the test queries of a folder in BEIR's layout.

    Args:
      compare: another TREC run, see `of_systems`.

    Raises:
      UserError: for a run that cannot be read, or that has none of the queries, and for
        a comparison with a system, which a file does not have.
    """
    if compare in SYSTEMS:
        raise UserError(
            f"--compare {compare}: {run} is a run and has no other systems; give a "
            "TREC run, or a model in place of the run"
        )
    qrels = collection.read(folder).test
    systems = {"run": trec.read(run)} | _compared(compare)
    return of_systems(systems, qrels, compare and OTHER)


def of_queries(qrels: Qrels, run: Run, metric: str) -> Mapping[str, float]:
    """The metric of each query of `qrels`; 0 for a query without ranked documents.

    As in trec_eval, scores are float32, and of equal ones the greater id comes first.
    """
    library = ir_measures()
    measure = library.parse_measure(METRICS[metric])
    ranked = {query: run.get(query, {}) for query in qrels}
    if measure.NAME == "RR":  # ir-measures' own RR@k has other ties
        ranked = {query: _first(ranked[query], measure["cutoff"]) for query in ranked}
        measure = library.RR
    values = library.iter_calc([measure], qrels, ranked)
    return dict.fromkeys(qrels, 0.0) | {each.query_id: each.value for each in values}


def _first(scores: Mapping[str, float], count: int) -> dict[str, float]:
    """The first `count` documents in trec_eval's order."""
    order = lambda name: (np.float32(scores[name]), name)
    return {name: scores[name] for name in sorted(scores, key=order)[: -count - 1 : -1]}


def ir_measures() -> ModuleType:
    """The library ir-measures. Raises UserError if it is not installed."""
    try:
        import ir_measures as library
    except ImportError:
        raise UserError(
            "retrieval needs ir-measures: pip install 'docjax[retrieval]'"
        ) from None
    return library
