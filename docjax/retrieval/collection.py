"""A retrieval collection in BEIR's layout: corpus, queries, and who answers what.

corpus.jsonl, queries.jsonl   documents, also .gz, .xz, .zst
qrels/SPLIT.tsv               query-id, corpus-id, score, perhaps under a header
qrels/SPLIT.qrels             TREC's: query-id, 0, corpus-id, score
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docjax.data.documents import full_text
from docjax.data.sources.jsonl import jsonl
from docjax.errors import UserError
from docjax.types import Document

SUFFIXES = ("", ".gz", ".xz", ".zst")
ENDS = (".qrels", ".tsv")
TUNING = ("dev", "validation", "valid", "val", "train")  # the first that is there

Run = dict[str, dict[str, float]]  # query id -> document id -> score
Qrels = dict[str, dict[str, int]]  # query id -> document id -> gain


class Collection(NamedTuple):
    """`test` and `tuning` hold queries with an answer only, each in one of them."""

    corpus: Path
    queries: dict[str, str]
    test: Qrels
    tuning: Qrels  # empty: no other split is there

    def documents(self, max_bad_fraction: float = 0.0) -> Iterator[Document]:
        return jsonl(str(self.corpus), max_bad_fraction)


def read(folder: Path) -> Collection:
    """The collection in a folder; its split is "test", or the only one.

    Raises:
      UserError: for a missing file, a line that is no judgement, and a judged query
        without text.
    """
    queries = {one.id: full_text(one) for one in jsonl(str(_file(folder, "queries")))}
    judged = sorted(file for end in ENDS for file in folder.glob(f"qrels/*{end}"))
    files = {file.stem: file for file in judged}
    if "test" not in files and len(files) != 1:
        raise UserError(
            f"{folder}/qrels: needs test.tsv or test.qrels, or one other file; it has "
            f"{', '.join(files) or 'none'}"
        )
    name = "test" if "test" in files else next(iter(files))
    test = _judgements(files[name], queries)
    if not test:
        raise UserError(f"{files[name]}: no query has a document with score 1 or more")
    others = [files[one] for one in TUNING if one in files and one != name]
    tuning = _judgements(others[0], queries) if others else {}
    tuning = {query: gains for query, gains in tuning.items() if query not in test}
    return Collection(_file(folder, "corpus"), queries, test, tuning)


def _file(folder: Path, name: str) -> Path:
    files = [folder / f"{name}.jsonl{suffix}" for suffix in SUFFIXES]
    found = [file for file in files if file.is_file()]
    if len(found) != 1:
        raise UserError(
            f"{folder}: {len(found)} files are called {name}.jsonl (also .gz, .xz, "
            ".zst), one is needed: corpus.jsonl, queries.jsonl and qrels/test.tsv make "
            "a collection"
        )
    return found[0]


def _judgements(file: Path, queries: dict[str, str]) -> Qrels:
    """The gains of a file, of queries that have any."""
    found: Qrels = {}
    separator, form = "\t", "query-id, corpus-id and a whole score, with tabs between"
    if file.suffix == ".qrels":
        separator, form = None, "query-id, 0, corpus-id and a whole score"
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read ({error})") from None
    for number, line in enumerate(lines, start=1):
        if number == 1 and not line.rstrip()[-1:].isdigit():
            continue  # a header
        try:
            query, *between, document, score = line.split(separator)
            gain = int(score)
            if len(between) != (separator is None):
                raise ValueError
        except ValueError:
            raise UserError(f"{file}, line {number}: {line!r} is not {form}") from None
        if query not in queries:
            raise UserError(f"{file}, line {number}: no query has the id {query!r}")
        found.setdefault(query, {})[document] = gain
    return {query: gains for query, gains in found.items() if max(gains.values()) > 0}
