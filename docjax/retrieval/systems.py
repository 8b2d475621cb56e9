"""What ranks the documents of a query: words, vectors, passages, and words with vectors.

bm25           the words of query and document
dense          the vectors of query and document; the best one if a document has several
maxp           the query's vector and the document's best passage
maxsim         the query's sentences, each with its best passage, summed
fused          bm25 and dense, weighted (`docjax.retrieval.fusion`)
fused_maxp     bm25 and maxp, weighted
fused_maxsim   bm25 and maxsim, weighted
rrf            bm25 and dense by their ranks, without a weight
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from docjax.data.sentences import sentences
from docjax.retrieval import finite, fusion, measures, nearest
from docjax.retrieval.folds import Folds
from docjax.retrieval.measures import TUNED
from docjax.types import Encoded, Qrels, Run

FUSED = {"dense": "fused", "maxp": "fused_maxp", "maxsim": "fused_maxsim"}
NAMES = ("bm25", *FUSED, *FUSED.values(), "rrf")
OF_PASSAGES = ("maxp", "maxsim", FUSED["maxp"], FUSED["maxsim"])
Vectors = Callable[[Sequence[str]], Float[np.ndarray, "q d"]]


class QueryVectors(NamedTuple):
    """The vectors of queries, and of their sentences if passages are searched."""

    whole: Float[np.ndarray, "q d"]
    sentences: Float[np.ndarray, "q u d"] | None  # zeros stand for missing sentences


class Systems(NamedTuple):
    """The runs of all systems, and how the weights of the fused ones were chosen."""

    runs: dict[str, Run]
    weights: dict[str, dict[str, float]]  # of the vectors, by fused system and query
    curves: dict[str, list[float]]  # the mean score at each of fusion.WEIGHTS


def read_queries(
    queries: Mapping[str, str], encode: Vectors, passages: bool
) -> QueryVectors:
    """The vectors of queries; `passages` wants those of their sentences too. Raises
    UserError for a query whose vectors are not finite."""
    texts, names = list(queries.values()), list(queries)
    whole = encode(texts)
    finite.check(whole, names, "query")
    if not passages:
        return QueryVectors(whole, None)
    parts = list(map(parts_of, texts))
    vectors = encode([sentence for part in parts for sentence in part])
    most = max(map(len, parts), default=1)
    padded = np.zeros((len(texts), most, whole.shape[-1]), np.float32)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    for row, of_query in enumerate(np.split(vectors, ends)):
        padded[row, : len(of_query)] = of_query
    finite.check(padded, names, "query")
    return QueryVectors(whole, padded)


def parts_of(query: str) -> list[str]:
    """The sentences of a query, or the query itself without one."""
    return sentences(query) or [query]


def by_vectors(
    names: Sequence[str],
    queries: QueryVectors,
    documents: Iterable[Encoded],
    top: int,
    *,
    cosine: bool,
) -> dict[str, Run]:
    """The `top` documents of each query by dense and, for sentences, maxp and maxsim.

    The documents are read once, in constant memory. A document's vector may be several
    side by side, each as wide as a query's. Raises UserError for a document whose
    vectors are not finite.
    """
    width = queries.whole.shape[-1]
    wanted = {"dense": queries.whole[:, None]}
    if queries.sentences is not None:
        wanted |= {"maxp": queries.whole[:, None], "maxsim": queries.sentences}
    search_for = functools.partial(nearest.Nearest, top=top, cosine=cosine)
    searches = {system: search_for(vectors) for system, vectors in wanted.items()}
    ids = []
    for document in finite.checked(documents):
        ids.append(document.id)
        whole = document.vector.reshape(-1, width)
        for system, search in searches.items():
            search.add(whole if system == "dense" else document.passages)
    return {
        system: nearest.as_run(search.best(), names, ids)
        for system, search in searches.items()
    }


def fused(
    runs: Mapping[str, Run],
    test: Qrels,
    tuning: Qrels | None = None,
    *,
    folds: Folds = (),
    scale: str = "min-max",
) -> Systems:
    """All systems of `runs`, and bm25 fused with each of the others.

    Args:
      runs: "bm25", "dense" and further rankings by vectors, of the queries of `test`.
      tuning: judgements of other queries, which choose the weight of a fused system by
        the metric TUNED; without any, a cross-validation over `folds` of `test` does.
      scale: see `fusion.fuse`.

    Raises:
      UserError: if ir-measures is not installed, and as `fusion.cross_validated`.
    """
    words, ranked, queries = runs["bm25"], Systems(dict(runs), {}, {}), list(test)
    judge = functools.partial(measures.of_queries, tuning or test, metric=TUNED)
    for system in (name for name in FUSED if name in runs):
        name, vectors = FUSED[system], runs[system]
        curve = fusion.table(vectors, words, list(tuning or test), judge, scale)
        if tuning:
            weights = dict.fromkeys(queries, fusion.best_weight(curve))
        else:
            weights = fusion.cross_validated(curve, folds)
        ranked.weights[name] = weights
        ranked.curves[name] = [float(np.mean(list(each.values()))) for each in curve]
        ranked.runs[name] = fusion.fuse(vectors, words, weights, scale)
    ranked.runs["rrf"] = fusion.by_ranks(runs["dense"], words, queries)
    return ranked
