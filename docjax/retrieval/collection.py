"""A retrieval collection: documents, queries, and which document answers which query.

A collection is a folder in BEIR's layout, or documents with a `query` field.

corpus.jsonl, queries.jsonl   documents, also .gz, .xz, .zst
corpus.tsv, queries.tsv       documents like MS MARCO's (`docjax/data/sources/tsv.py`)
qrels/SPLIT.tsv               query-id, corpus-id, score, a header is allowed
qrels/SPLIT.qrels             TREC's: query-id, 0, corpus-id, score
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from docjax.data.documents import full_text
from docjax.data.sources.jsonl import jsonl
from docjax.data.sources.tsv import tsv
from docjax.errors import UserError
from docjax.types import Document, Qrels

KINDS = ("jsonl", "tsv")
SUFFIXES = ("", ".gz", ".xz", ".zst")
ENDS = (".qrels", ".tsv")
TUNING = ("dev", "validation", "valid", "val", "train")  # the first that exists


class Collection(NamedTuple):
    """`test` and `tuning` hold the queries with an answer; no query is in both."""

    corpus: Path
    queries: dict[str, str]
    test: Qrels
    tuning: Qrels  # empty if no other split exists

    def documents(self, max_bad_fraction: float = 0.0) -> Iterator[Document]:
        return _read(self.corpus, max_bad_fraction)


class Judged(NamedTuple):
    """The data for mining negatives; every call of `documents` gives the corpus."""

    documents: Callable[[], Iterator[Document]]
    queries: dict[str, str]
    qrels: Qrels


def read(folder: Path) -> Collection:
    """The collection in a folder; its split is "test", or the only split.

    Raises:
      UserError: for a missing file, a line that is not a judgement, or a judged query
        without text.
    """
    queries = _queries(folder)
    files = _qrels_files(folder)
    if "test" not in files and len(files) != 1:
        raise UserError(
            f"{folder}/qrels: needs test.tsv or test.qrels, or one other file; it has "
            f"{', '.join(files) or 'none'}"
        )
    name = "test" if "test" in files else next(iter(files))
    test = _judgements(files[name], queries)
    if not test:
        raise UserError(f"{files[name]}: no query has a document with score 1 or more")
    tuning_files = [
        files[split] for split in TUNING if split in files and split != name
    ]
    tuning = _judgements(tuning_files[0], queries) if tuning_files else {}
    tuning = {query: gains for query, gains in tuning.items() if query not in test}
    return Collection(_file(folder, "corpus"), queries, test, tuning)


def read_judged(folder: Path, max_bad_fraction: float) -> Judged:
    """The documents of a folder, and the queries that any split judges.

    Raises:
      UserError: as `read`, but a single split of any name is enough.
    """
    queries, qrels = _queries(folder), {}
    for file in _qrels_files(folder).values():
        for query, gains in _judgements(file, queries).items():
            qrels[query] = qrels.get(query, {}) | gains
    if not qrels:
        raise UserError(f"{folder}/qrels: no query has a document with score 1 or more")
    judged = Collection(_file(folder, "corpus"), queries, qrels, {})
    documents = functools.partial(judged.documents, max_bad_fraction)
    return Judged(documents, {name: queries[name] for name in qrels}, qrels)


def read_split(folder: Path, split: str) -> Collection:
    """The collection in a folder, with the judgements of one split in `test`.

    Raises:
      UserError: as `read`, and for a folder without this split.
    """
    queries, file = _queries(folder), _split_file(folder, split)
    test = _judgements(file, queries)
    if not test:
        raise UserError(f"{file}: no query has a document with score 1 or more")
    return Collection(_file(folder, "corpus"), queries, test, {})


def files(folder: Path, split: str) -> list[Path]:
    """The files of queries and of the judgements of one split.

    Raises:
      UserError: if a file is missing.
    """
    return [_file(folder, "queries"), _split_file(folder, split)]


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
    qrels = {
        name: {link: 1 for link in linked if link in known} | {name: 2}
        for name, linked in links.items()
    }
    return ids, queries, qrels


def _queries(folder: Path) -> dict[str, str]:
    queries = _read(_file(folder, "queries"))
    return {query.id: full_text(query) for query in queries}


def _read(file: Path, max_bad_fraction: float = 0.0) -> Iterator[Document]:
    read = tsv if ".tsv" in file.suffixes else jsonl
    return read(str(file), max_bad_fraction)


def _qrels_files(folder: Path) -> dict[str, Path]:
    """The files of judgements by split."""
    files: dict[str, Path] = {}
    for file in sorted(file for end in ENDS for file in folder.glob(f"qrels/*{end}")):
        if file.stem in files:
            raise UserError(
                f"{file.parent}: {files[file.stem].name} and {file.name} judge the "
                "same split: remove one file"
            )
        files[file.stem] = file
    return files


def _split_file(folder: Path, split: str) -> Path:
    """The file of judgements of one split. Raises UserError if it is missing."""
    files = _qrels_files(folder)
    if split not in files:
        raise UserError(
            f"{folder}/qrels: needs {split}.tsv or {split}.qrels; it has "
            f"{', '.join(files) or 'none'}"
        )
    return files[split]


def _file(folder: Path, name: str) -> Path:
    names = [f"{name}.{kind}{suffix}" for kind in KINDS for suffix in SUFFIXES]
    files = [folder / name for name in names]
    existing = [file for file in files if file.is_file()]
    if len(existing) != 1:
        raise UserError(
            f"{folder}: {len(existing)} files are called {name}.jsonl or {name}.tsv "
            "(also .gz, .xz, .zst), not 1: a collection needs a corpus, queries and "
            "qrels/test.tsv"
        )
    return existing[0]


def _judgements(file: Path, queries: dict[str, str]) -> Qrels:
    """The judgements of a file, for queries that have a score of 1 or more."""
    qrels: Qrels = {}
    separator, form = "\t", "query-id, corpus-id and a whole score, with tabs between"
    if file.suffix == ".qrels":
        separator, form = None, "query-id, 0, corpus-id and a whole score"
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read ({error})") from None
    for number, line in enumerate(lines, start=1):
        fields = line.split(separator)
        if number == 1 and fields and fields[-1].strip().isalpha():
            continue  # a header, such as query-id, corpus-id, score
        try:
            query, *between, document, score = fields
            gain = int(score)
            if len(between) != (separator is None):
                raise ValueError
        except ValueError:
            raise UserError(f"{file}, line {number}: {line!r} is not {form}") from None
        if query not in queries:
            raise UserError(f"{file}, line {number}: no query has the id {query!r}")
        qrels.setdefault(query, {})[document] = gain
    return {query: gains for query, gains in qrels.items() if max(gains.values()) > 0}
