"""MatchPyramid and Conv-KNRM put BM25's first documents into a new order.

    python -m benchmarks.rerankers --data DATA/cranfield --fold 0 --seeds 0 1 2

Prints a Markdown table of P@5, P@10, P@20 and nDCG@10 on the test queries of a
collection (`docjax.retrieval.collection`), by seed: the rows with which graph-roberta's
paper compares on WIKIR. Words are BM25's: stemmed, without stop words. Word vectors are
a latent semantic analysis of the documents, and are trained. An example is a relevant
document of a training query and one of BM25's first documents that is not relevant,
drawn anew in each epoch. The loss is max(0, 1 - score + score of the negative), as in
Conv-KNRM's paper. The queries that choose pick the epoch by nDCG@10. Batches have
shapes of powers of 2: --words 128 or 256 saves half the time of the next one.

Axis letters: b pairs, q words of a query, t words of a document, w words of the
collection, d width of a vector.
"""

import argparse
import dataclasses
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState
from jaxtyping import Array, Float, Int
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from benchmarks import tiny
from benchmarks.reranker_models import PADDING, ConvKNRM, MatchPyramid, Reranker
from docjax.data.records import full_text
from docjax.errors import UserError
from docjax.recipe.words import ALONE, tfidf
from docjax.retrieval import bm25, collection, measures, negatives
from docjax.types import Document, Qrels, Run, Units

logger = logging.getLogger("docjax.benchmarks")

METRICS = ("p@5", "p@10", "p@20", "ndcg@10")
CHOOSING = "ndcg@10"  # picks the epoch
BAD = 0.01  # of the documents may be empty
WIDTH = 100  # of a word vector
PAIRS = 32  # in a training step
OPTIMIZER = optax.adam(1e-3)

SYSTEMS = {"MatchPyramid": MatchPyramid, "Conv-KNRM": ConvKNRM}
Texts = Mapping[str, Int[np.ndarray, " t"]]  # word ids, from 1, by the text's id


@dataclasses.dataclass(frozen=True, eq=False)
class Data:
    """A collection as word ids.

    Attributes:
      table: the first word vectors.
      pairs: a training query and a document that answers it.
      negatives: BM25's first documents of the training queries, without the answers.
      candidates: BM25's first documents of the other queries.
      tuning, test: the judgements of the queries that choose, and that test.
    """

    queries: Texts
    documents: Texts
    table: Float[np.ndarray, "w d"]
    pairs: Sequence[tuple[str, str]]
    negatives: negatives.Negatives
    candidates: Run
    tuning: Qrels
    test: Qrels


def read(flags: argparse.Namespace) -> Data:
    """The data of the flags; prints how much is cut.

    Raises:
      UserError: as `collection.read`, and if no query chooses or none can train.
    """
    judged = collection.read(flags.data, flags.fold)
    texts, relevant = collection.to_train(flags.data, flags.fold)
    if not judged.tuning:
        raise UserError(f"{judged.name} has no queries that choose: give --fold 0")
    documents = list(judged.documents(BAD))
    index = bm25.index(documents)
    table, of_documents, of_queries = as_words(documents, judged.queries, index)
    kept = cut(of_documents, flags.words)
    mined = negatives.mine(partial(index.search, texts), relevant, flags.top)
    pairs = [
        (query, name)
        for query, gains in relevant.items()
        for name, gain in gains.items()
        if gain > 0 and name in kept and mined[query]
    ]
    if not pairs:
        raise UserError(f"{judged.name}: no training query has an answer and negatives")
    counts = map(len, (relevant, judged.tuning, judged.test))
    print("Queries: {} train, {} choose, {} test.\n".format(*counts))
    others = {name: judged.queries[name] for name in (*judged.tuning, *judged.test)}
    found = index.search(others, flags.top)
    return Data(
        *(of_queries, kept, table, pairs, mined, found, judged.tuning, judged.test)
    )


def as_words(
    documents: Sequence[Document], queries: Mapping[str, str], index: bm25.Index
) -> tuple[Float[np.ndarray, "w d"], Texts, Texts]:
    """Word vectors, and the word ids of documents and queries, as BM25 reads them."""
    found = index.settings.words([*map(full_text, documents), *queries.values()])
    words = [np.array(row, np.int32) + 1 for row in found.ids]  # 0 is PADDING
    rows, asked = words[: len(documents)], words[len(documents) :]
    return (
        word_vectors(rows, 1 + len(found.vocab)),
        dict(zip(index.ids, rows, strict=True)),
        dict(zip(queries, asked, strict=True)),
    )


def cut(texts: Texts, most: int) -> Texts:
    """The first `most` words of each text; prints how many words are left out."""
    over = [len(words) - most for words in texts.values() if len(words) > most]
    share = sum(over) / max(1, sum(map(len, texts.values())))
    print(
        f"{len(over)} of {len(texts)} documents are cut to {most} words, which leaves "
        f"out {share:.1%} of all words."
    )
    return {name: words[:most] for name, words in texts.items()}


def word_vectors(
    documents: Sequence[Int[np.ndarray, " t"]], vocabulary: int
) -> Float[np.ndarray, "w d"]:
    """Word vectors of length 1: latent semantic analysis, random where it has none."""
    units = (
        Units(row, np.array([0, len(row)]), np.zeros(1, int), np.zeros((0, 2), int))
        for row in documents
    )
    matrix, idf = tfidf(units, vocabulary, power=ALONE)
    width = min(WIDTH, *(size - 1 for size in matrix.shape))
    svd = TruncatedSVD(width, random_state=0).fit(matrix)
    drawn = np.random.default_rng(0).normal(size=(vocabulary, width))
    found = np.where(idf[:, None] > 0, svd.components_.T * idf[:, None], drawn)
    return normalize(found).astype(np.float32)


class Batch(NamedTuple):
    queries: Int[np.ndarray, "b q"]
    documents: Int[np.ndarray, "b t"]  # the relevant ones, then the negatives


def padded(rows: Sequence[Int[np.ndarray, " t"]]) -> Int[np.ndarray, "b t"]:
    """Word ids of texts; the width is a power of 2, so that few shapes are compiled."""
    longest = max(16, *map(len, rows))
    found = np.full((len(rows), 1 << (longest - 1).bit_length()), PADDING, np.int32)
    for row, words in zip(found, rows, strict=True):
        row[: len(words)] = words
    return found


def batches(data: Data, generator: np.random.Generator) -> list[Batch]:
    """One epoch: whole batches of all pairs, each with a newly drawn negative.

    A batch has queries of similar length, so that there is little padding.
    """
    used = len(data.pairs) // PAIRS * PAIRS or len(data.pairs)
    chosen = generator.permutation(len(data.pairs))[:used]
    pairs = [data.pairs[number] for number in chosen]
    pairs.sort(key=lambda pair: len(data.queries[pair[0]]))
    starts = np.arange(0, used, PAIRS)
    return [
        batch(data, pairs[start : start + PAIRS], generator)
        for start in generator.permutation(starts).tolist()
    ]


def batch(
    data: Data, pairs: Sequence[tuple[str, str]], generator: np.random.Generator
) -> Batch:
    """Pairs of a query and its answer, with drawn negatives."""
    drawn = [generator.choice(data.negatives[query]) for query, _ in pairs]
    names = [*(name for _, name in pairs), *drawn]
    queries = padded([data.queries[query] for query, _ in pairs])
    documents = padded([data.documents[name] for name in names])
    return Batch(np.concatenate([queries, queries]), documents)


@jax.jit
def step(state: TrainState, batch: Batch) -> TrainState:
    """The state after one step on max(0, 1 - score + score of the negative)."""

    def loss(params: Any) -> Float[Array, ""]:
        relevant, negative = jnp.split(state.apply_fn(params, *batch), 2)
        margins = relevant - negative
        return optax.losses.hinge_loss(margins, jnp.ones_like(margins)).mean()

    return state.apply_gradients(grads=jax.grad(loss)(state.params))


@jax.jit
def scored(
    state: TrainState, query: Int[Array, "1 q"], documents: Int[Array, "b t"]
) -> Float[Array, " b"]:
    queries = jnp.broadcast_to(query, (len(documents), query.shape[1]))
    return state.apply_fn(state.params, queries, documents)


def reranked(state: TrainState, data: Data, queries: Sequence[str], top: int) -> Run:
    """BM25's first documents of the queries, by the model's score, best first."""
    run: Run = {}
    for query in queries:
        names = list(data.candidates[query])
        empty = [np.zeros(0, np.int32)] * (top - len(names))
        rows = padded([*(data.documents[name] for name in names), *empty])
        values = np.asarray(scored(state, padded([data.queries[query]]), rows))
        best_first = sorted(zip(values.tolist(), names), reverse=True)
        run[query] = {name: value for value, name in best_first}
    return run


def mean(qrels: Qrels, run: Run, metric: str) -> float:
    return float(np.mean(list(measures.of_queries(qrels, run, metric).values())))


def trained(model: Reranker, data: Data, seed: int, flags: argparse.Namespace) -> Run:
    """The test queries' documents, by the model of the best epoch."""
    generator = np.random.default_rng(seed)
    few = padded([np.zeros(0, np.int32)])
    params = model.init(jax.random.key(seed), few, few)
    state = TrainState.create(apply_fn=model.apply, params=params, tx=OPTIMIZER)
    best, chosen = -1.0, state
    for epoch in range(1, flags.epochs + 1):
        for each in batches(data, generator):
            state = step(state, each)
        run = reranked(state, data, list(data.tuning), flags.top)
        score = mean(data.tuning, run, CHOOSING)
        logger.info("seed %d, epoch %d: %.3f", seed, epoch, score)
        if score > best:
            best, chosen = score, state
    return reranked(chosen, data, list(data.test), flags.top)


def table(flags: argparse.Namespace) -> None:
    data = read(flags)
    print(f"| system | {' | '.join(METRICS)} |")
    print("|---" * (len(METRICS) + 1) + "|", flush=True)
    show("BM25", data.test, [data.candidates])
    for system in flags.systems:
        model = Reranker(
            SYSTEMS[system](), data.table
        )  # one for all seeds: compiled once
        runs = [trained(model, data, seed, flags) for seed in flags.seeds]
        show(system, data.test, runs)


def show(system: str, test: Qrels, runs: Sequence[Run]) -> None:
    """Prints a system's row: each metric, by seed."""
    cells = [
        ", ".join(f"{mean(test, run, metric):.3f}" for run in runs)
        for metric in METRICS
    ]
    print(f"| {system} | {' | '.join(cells)} |", flush=True)


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", required=True, help="a collection")
    parser.add_argument("--fold", type=int, help="of the queries, which tests")
    parser.add_argument("--top", type=int, default=100, help="documents of BM25")
    parser.add_argument("--words", type=int, default=500, help="read of a document")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=[*SYSTEMS])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    sizes = "--data", tiny.collection, "--fold", 0, "--top", 10, "--words", 16
    flags = tiny.parse(
        parser, given, *sizes, "--epochs", 1, "--seeds", 0, "--systems", "MatchPyramid"
    )
    try:
        if min(flags.words, flags.top) < 1:
            raise UserError("--words and --top: give 1 or more")
        table(flags)
    except UserError as error:
        raise SystemExit(f"rerankers: {error}") from None


if __name__ == "__main__":
    main()
