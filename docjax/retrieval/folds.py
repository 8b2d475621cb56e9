"""Folds: groups of queries that take turns as the test."""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from docjax.data import once
from docjax.errors import UserError
from docjax.storage import json_file

COUNT = 5
Folds = Sequence[Sequence[str]]


def drawn(queries: Sequence[str], seed: int = 0) -> list[list[str]]:
    """COUNT folds of nearly the same size; with fewer queries, one fold for each."""
    numbers = np.random.default_rng(seed).permutation(len(queries)) % COUNT
    folds: list[list[str]] = [[] for _ in range(min(COUNT, len(queries)))]
    for query, number in zip(queries, numbers.tolist(), strict=True):
        folds[number].append(query)
    return folds


def read(file: Path, queries: Iterable[str]) -> list[list[str]]:
    """The folds in a JSON file, a list of lists of query ids. Raises UserError for a
    file of another form or with fewer than two folds, and as `check`."""
    folds = json_file.read(file, list)
    # Ids are texts or, as in other files, whole numbers.
    is_fold = lambda fold: isinstance(fold, list) and {*map(type, fold)} <= {str, int}
    if len(folds) < 2 or not all(map(is_fold, folds)):
        raise UserError(f"{file}: folds are two or more lists of query ids")
    folds = [list(map(str, fold)) for fold in folds]
    check(folds, queries, str(file))
    return folds


def check(folds: Folds, queries: Iterable[str], place: str) -> None:
    """Raises UserError for a query in two folds, and if one of `queries` is in none."""
    counts = Counter(itertools.chain.from_iterable(folds))
    twice = [query for query, count in counts.items() if count > 1]
    if twice:
        raise UserError(
            f"{place}: query {twice[0]!r} is in the folds {counts[twice[0]]} times: "
            "leave it in one fold"
        )
    queries = list(queries)
    if unknown := len(counts.keys() - set(queries)):
        text = "%s: %d of %d queries in the folds have no judgement: left out"
        once.warn(text, place, unknown, len(counts))
    missing = [query for query in queries if query not in counts]
    if missing:
        raise UserError(
            f"{place}: {len(missing)} of {len(queries)} judged queries are in no fold, "
            f"{missing[0]!r} is the first: add each to a fold"
        )


def rotation(folds: Folds, fold: int) -> tuple[set[str], set[str], set[str]]:
    """The queries to train on, to choose by, and to test on, when `fold` is the test.

    The next fold chooses, all others train. Raises UserError if there is no such fold,
    or fewer than three.
    """
    if len(folds) < 3 or not 0 <= fold < len(folds):
        raise UserError(
            f"fold {fold} of {len(folds)} folds: give 3 folds or more, and a number "
            f"from 0 to {len(folds) - 1}"
        )
    tuning = (fold + 1) % len(folds)
    others = [f for number, f in enumerate(folds) if number not in (fold, tuning)]
    return set().union(*others), set(folds[tuning]), set(folds[fold])
