"""A retrieval collection: documents, queries, and which document answers which query.

A collection is a folder (`docjax/retrieval/beir.py`), a name after "ir-datasets:"
(`docjax/retrieval/ir_dataset.py`), or documents with a `query` field.
"""

import functools
import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from docjax.data import once
from docjax.data.splits import CHOOSING
from docjax.errors import UserError
from docjax.retrieval import folds as folds_lib
from docjax.retrieval.beir import BeirFolder
from docjax.retrieval.folds import Folds
from docjax.retrieval.ir_dataset import PREFIX, IrDataset
from docjax.types import Document, Qrels, Reader

logger = logging.getLogger(__name__)
Store = BeirFolder | IrDataset
# Without a split for it, each TENTH training query chooses, but at most CHOOSE of them.
TENTH, CHOOSE = 10, 100


class Collection(NamedTuple):
    """`test` and `tuning` hold the queries with an answer; no query is in both.

    The queries in `tuning` choose what a run keeps and the weight of a fusion. They are
    a split of their own, or each tenth query of the split "train" (100 at most, as
    graph-roberta's paper holds out of MS MARCO), which then trains on the others.
    """

    name: str
    documents: Reader
    queries: dict[str, str]
    test: Qrels
    tuning: Qrels  # empty if no other split exists
    folds: Folds  # of the test queries; empty if none are given


class Judged(NamedTuple):
    """The data for mining negatives; every call of `documents` gives the corpus."""

    documents: Callable[[], Iterator[Document]]
    queries: dict[str, str]
    qrels: Qrels


def read(place: str | Path, fold: int | None = None) -> Collection:
    """The collection at a place; its split is "test", or the only split.

    fold: this fold of the queries is the test, and the next one chooses. Without a file
    of folds they are drawn.

    Raises UserError for a missing file, a line that is not a judgement, or a judged
    query without text.
    """
    store = opened(place)
    queries, documents = store.queries(), store.reader()
    split = _test_split(store)
    test = _some(store, split, queries)
    if store.splits() == (split,):
        _warn_of_unjudged(store, queries, store.judgements(split))
    folds = _folds(store, test)
    if fold is not None:
        test, tuning = _of_fold(folds, test, fold)
        return Collection(str(store), documents, queries, test, tuning, ())
    tuning = _to_choose(store, split, queries)
    kept = {query: gains for query, gains in tuning.items() if query not in test}
    if shared := len(tuning) - len(kept):
        text = "%s: %d of %d queries that could choose are test queries: they do not choose"
        once.warn(text, str(store), shared, len(tuning))
    return Collection(str(store), documents, queries, test, kept, folds)


def read_test(place: str | Path, fold: int | None = None) -> Qrels:
    """The judgements of the test queries, those that `read` gives. Raises UserError as
    `read`."""
    store = opened(place)
    # A dataset leaves out queries without a text; a folder has none.
    queries = store.queries() if isinstance(store, IrDataset) else None
    test = _some(store, _test_split(store), queries)
    return test if fold is None else _of_fold(_folds(store, test), test, fold)[0]


def read_judged(place: str | Path, max_bad_fraction: float) -> Judged:
    """The documents of a collection, and the queries that any split judges. Raises
    UserError as `read`, but a single split of any name is enough."""
    store, qrels, judged = opened(place), {}, set()
    queries = store.queries()
    for split in store.splits():
        of_split = store.judgements(split, queries)
        judged.update(of_split)
        for query, gains in _with_answer(store, split, of_split).items():
            known = qrels.setdefault(query, {})
            for document, gain in gains.items():  # no split makes an answer a negative
                known[document] = max(gain, known.get(document, gain))
    if not qrels:
        raise UserError(
            f"{store}: no query has a document with score 1 or more: add judgements"
        )
    _warn_of_unjudged(store, queries, judged)
    documents = functools.partial(store.reader(), max_bad_fraction)
    return Judged(documents, {name: queries[name] for name in qrels}, qrels)


def to_train(place: str | Path, fold: int | None) -> tuple[dict[str, str], Qrels]:
    """The queries and judgements of the split "train", without those that choose.

    fold: in place of the split, the test queries without this fold and the next.

    Raises UserError as `read`, and for a collection without this split.
    """
    store = opened(place)
    queries, split = store.queries(), _training_split(store, fold)
    qrels = _some(store, split, queries)
    if fold is not None:
        chosen, _, _ = _rotation(_folds(store, qrels), qrels, fold)
        kept = {query: gains for query, gains in qrels.items() if query in chosen}
    else:
        kept = _not_judged_otherwise(store, qrels, queries)
    return {name: queries[name] for name in kept}, kept


def _not_judged_otherwise(store: Store, train: Qrels, queries: dict[str, str]) -> Qrels:
    """The training queries that neither test nor choose; logs what is left out."""
    if tuple(store.splits()) == ("train",):
        logger.warning(
            "%s: the queries that train also test, so the scores say how well they are "
            "remembered: add qrels/test.tsv, or set fold",
            store,
        )
        return train
    test = _answered(store, "test", queries) if "test" in store.splits() else {}
    choose = _to_choose(store, "test", queries)
    kept = {q: train[q] for q in train if q not in test and q not in choose}
    if not kept:
        raise UserError(
            f"{store}: all {len(train)} training queries are test queries or choose: "
            "give qrels/train.tsv other queries"
        )
    given = test | (choose if _splits_to_choose(store) else {})
    if shared := given.keys() & train.keys():
        text = "%s: %d of %d training queries also test or choose: they do not train"
        once.warn(text, str(store), len(shared), len(train))
    return kept


def training_files(place: str | Path, fold: int | None) -> list[Path]:
    """The files that `to_train` reads, without the documents. Raises UserError if a
    file is missing."""
    store = opened(place)
    splits = [_training_split(store, fold)]
    if fold is None:  # the queries that test or choose do not train
        others = ("test", *_splits_to_choose(store)[:1])
        splits += [name for name in others if name in store.splits()]
    return store.files(splits)


def opened(place: str | Path) -> Store:
    """The collection at a place, with nothing read yet."""
    if str(place).startswith(PREFIX):
        return IrDataset(str(place).removeprefix(PREFIX))
    return BeirFolder(Path(place))


def of_documents(
    documents: Iterable[Document],
) -> tuple[list[str], dict[str, str], Qrels]:
    """The documents' ids, the queries of documents with a query, and the judgements.

    A query has its document's id. Its document has the gain 2, and the `documents` that
    its document links to have the gain 1.
    """
    ids, queries, links = [], {}, {}
    for document in documents:
        ids.append(document.id)
        if document.query:
            queries[document.id], links[document.id] = document.query, document.links
    known = set(ids)
    unknown = sum(link not in known for linked in links.values() for link in linked)
    if unknown:
        text = "%d of %d links of documents with a query name none of the %d documents "
        count = sum(map(len, links.values()))
        once.warn(f"{text}of this part: left out", unknown, count, len(known))
    qrels = {
        name: {link: 1 for link in linked if link in known} | {name: 2}
        for name, linked in links.items()
    }
    return ids, queries, qrels


def _test_split(store: Store) -> str:
    splits = store.splits()
    if "test" not in splits and len(splits) != 1:
        raise UserError(
            f"{store}: needs judgements test, or of one other split; it has "
            f"{', '.join(splits) or 'none'}: {store.mend('test')}"
        )
    return "test" if "test" in splits else splits[0]


def _training_split(store: Store, fold: int | None) -> str:
    if fold is not None:
        return _test_split(store)
    if "train" not in store.splits():
        raise UserError(
            f"{store}: needs judgements train; it has "
            f"{', '.join(store.splits()) or 'none'}: {store.mend('train')}, or set fold"
        )
    return "train"


def _to_choose(store: Store, test: str, queries: Container[str] | None) -> Qrels:
    """The judgements of the queries that choose; {} if only `test` is judged."""
    names = [name for name in _splits_to_choose(store) if name != test]
    if names:
        return _answered(store, names[0], queries)
    if "train" in store.splits() and test != "train":
        return _tenth(_answered(store, "train", queries))
    return {}


def _splits_to_choose(store: Store) -> list[str]:
    return [name for name in CHOOSING if name in store.splits()]


def _tenth(qrels: Qrels) -> Qrels:
    step = max(TENTH, -(-len(qrels) // CHOOSE))
    return {query: qrels[query] for query in list(qrels)[step - 1 :: step]}


def _some(store: Store, split: str, queries: Container[str] | None) -> Qrels:
    """The judgements of a split. Raises UserError if no query has an answer."""
    qrels = _answered(store, split, queries)
    if not qrels:
        raise UserError(
            f"{store}, judgements {split}: no query has a document with score 1 or "
            "more: add judgements"
        )
    return qrels


def _answered(store: Store, split: str, queries: Container[str] | None) -> Qrels:
    """The judgements of a split's queries that have an answer."""
    return _with_answer(store, split, store.judgements(split, queries))


def _with_answer(store: Store, split: str, qrels: Qrels) -> Qrels:
    """The judgements of the queries that have an answer; warns of the other queries."""
    answered = {q: gains for q, gains in qrels.items() if max(gains.values()) > 0}
    if answered and len(answered) < len(qrels):
        without = len(qrels) - len(answered)
        text = "%s, judgements %s: %d of %d queries have no document with score 1 or"
        once.warn(f"{text} more: left out", str(store), split, without, len(qrels))
    return answered


def _warn_of_unjudged(
    store: Store, queries: Mapping[str, str], judged: Container[str]
) -> None:
    """Warns of queries that no split judges."""
    if unjudged := sum(query not in judged for query in queries):
        text = "%s: %d of %d queries have no judgement in any split: left out"
        once.warn(text, str(store), unjudged, len(queries))


def _of_fold(folds: Folds, test: Qrels, fold: int) -> tuple[Qrels, Qrels]:
    """The judgements of a fold, and of the fold that chooses for it."""
    _, to_choose, to_test = _rotation(folds, test, fold)
    part = lambda names: {q: test[q] for q in test if q in names}
    if not part(to_test):
        raise UserError(
            f"fold {fold} has no judged query: give another fold, or change folds.json"
        )
    return part(to_test), part(to_choose)


def _rotation(folds: Folds, test: Qrels, fold: int) -> tuple[set[str], ...]:
    """As `folds.rotation`, over the given folds or drawn ones."""
    return folds_lib.rotation(folds or folds_lib.drawn(list(test)), fold)


def _folds(store: Store, test: Qrels) -> Folds:
    """The given folds, each with its judged queries only."""
    folds = store.folds(test)
    return [[query for query in fold if query in test] for fold in folds]
