"""Hard negatives: documents that a ranking puts high and nobody judged relevant.

A file of negatives has a JSON object per line; the last line is its seal:

    {"query": ID, "text": TEXT, "negatives": [document ids, best first]}
    {"seal": sha256 of the lines before, "documents": COUNT, "ids": DIGEST,
     "made_by": NAME, "queries": COUNT}

`documents` and `ids` are the number and the digest of the documents that were ranked.
Texts and digest say whether a file is of the queries and the documents of a run: other
collections may have the same ids.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from docjax.errors import UserError
from docjax.storage import atomic
from docjax.types import Qrels, Run

Negatives = Mapping[str, list[str]]  # query id -> document ids, best first
AGAIN = "write it again with docjax mine"
MOST = 100  # relevant documents of a query for which a ranking is longer, or `top`


class Trained(NamedTuple):
    """What a run trains on: its documents, and the texts of its queries by id."""

    corpus: Collection[str]  # the ids of all documents
    documents: Collection[str]  # the ids of those that train
    queries: Mapping[str, str]


class Digest:
    """The number and a digest of ids, in any order."""

    def __init__(self, ids: Iterable[str] = ()):
        self.count, self._sum = 0, 0
        for name in ids:
            self.add(name)

    def add(self, name: str) -> None:
        self.count += 1
        self._sum += int.from_bytes(hashlib.sha256(name.encode()).digest())

    def __str__(self) -> str:
        return f"{self._sum % (1 << 256):064x}"


def mine(
    rank: Callable[[int], Run], qrels: Qrels, top: int, margin: float | None = None
) -> dict[str, list[str]]:
    """The `top` best documents of each query of `qrels` that are not relevant to it.

    Args:
      rank: gives a run with that many documents per query. `mine` asks for more than
        `top`, so that `top` remain without the relevant documents. A query with more
        than MOST relevant documents may have fewer: it does not lengthen all rankings.
      qrels: a document with a gain above 0 is relevant.
      margin: leaves out documents that score above (1 - margin) of the query's best
        relevant document: likely answers that nobody judged (NV-Retriever, Moreira et
        al., 2024). If all relevant documents are below the ranking, so is that limit,
        and the query has no negatives. None: leaves out none.
    """
    relevant = {
        query: {name for name, gain in gains.items() if gain > 0}
        for query, gains in qrels.items()
    }
    most = max(map(len, relevant.values()), default=0)
    run = rank(top + min(most, max(top, MOST)))
    return {
        query: _below(run.get(query, {}), known, margin)[:top]
        for query, known in relevant.items()
    }


def _below(
    scores: Mapping[str, float], relevant: Container[str], margin: float | None
) -> list[str]:
    """The documents that are not relevant, in order, below the margin."""
    names = [name for name in scores if name not in relevant]
    if margin is None:
        return names
    best = max((s for name, s in scores.items() if name in relevant), default=None)
    if best is None:
        return []
    limit = best - margin * abs(best)
    return [name for name in names if scores[name] <= limit]


def write(
    negatives: Negatives,
    file: Path,
    *,
    queries: Mapping[str, str],
    documents: Digest,
    made_by: str,
) -> None:
    """Writes a sealed file; `documents` are those that were ranked. Raises UserError if
    the file cannot be written; the old file stays."""
    lines = [
        _line({"query": query, "text": queries[query], "negatives": names})
        for query, names in negatives.items()
    ]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    seal = {
        "seal": digest,
        "documents": documents.count,
        "ids": str(documents),
        "made_by": made_by,
        "queries": len(negatives),
    }
    try:
        atomic.write_bytes(file, b"".join([*lines, _line(seal)]))
    except OSError as error:
        raise UserError(f"{file}: cannot be written ({error})") from None


def read(file: Path, trained: Trained | None = None) -> dict[str, list[str]]:
    """The negatives of each query, from a file whose seal is intact.

    trained: what the negatives are for; None: anything.

    Raises UserError for a file that is missing, cut short or changed, that was made of
    other documents than those of `trained`, or that has none of its queries or another
    text of one.
    """
    try:
        lines = file.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror})") from None
    seal = _seal(file, lines)
    records = list(map(json.loads, lines[:-1]))
    negatives = {record["query"]: record["negatives"] for record in records}
    if trained is not None:
        if "ids" not in seal:
            raise UserError(f"{file}: was made by an older docjax: {AGAIN}")
        _check_known(file, negatives, trained.corpus)
        _check_ids(file, seal["ids"], trained)
        _check_queries(file, {one["query"]: one["text"] for one in records}, trained)
    return negatives


def made_by(file: Path) -> str | None:
    """The `made_by` of a file's seal; None if `read` cannot compare the file."""
    try:
        seal = _seal(file, file.read_bytes().splitlines(keepends=True))
    except (OSError, UserError):
        return None
    return seal.get("made_by") if "ids" in seal else None


def _seal(file: Path, lines: list[bytes]) -> dict[str, Any]:
    """The seal, which fits the other lines. Raises UserError if it does not."""
    try:
        seal = json.loads(lines[-1])
        digest = seal["seal"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise UserError(
            f"{file}: the last line is no seal, so the file is cut short or not a file "
            f"of negatives: {AGAIN}"
        ) from None
    if digest != hashlib.sha256(b"".join(lines[:-1])).hexdigest():
        raise UserError(f"{file}: was changed after it was written: {AGAIN}")
    return seal


def _check_known(file: Path, negatives: Negatives, known: Container[str]) -> None:
    names = {name for ranked in negatives.values() for name in ranked}
    unknown = sorted(name for name in names if name not in known)
    if unknown:
        raise UserError(
            f"{file}: {len(unknown)} of {len(names)} documents are not in the corpus, "
            f"{unknown[0]!r} is the first: {AGAIN}, with the documents of this corpus"
        )


def _check_ids(file: Path, ids: str, trained: Trained) -> None:
    """Raises UserError if neither the corpus nor the training documents were ranked."""
    if all(ids != str(Digest(ranked)) for ranked in trained[:2]):
        raise UserError(
            f"{file}: was made of other documents than the {len(trained.corpus)} of this "
            f"corpus: {AGAIN}, with these documents"
        )


def _check_queries(file: Path, texts: Mapping[str, str], trained: Trained) -> None:
    shared = texts.keys() & trained.queries.keys()
    if not shared and trained.queries:
        raise UserError(
            f"{file}: has none of the {len(trained.queries)} queries that train: "
            f"{AGAIN}, with these queries"
        )
    other = sorted(name for name in shared if texts[name] != trained.queries[name])
    if other:
        raise UserError(
            f"{file}: {len(other)} of {len(shared)} queries have another text, "
            f"{other[0]!r} is the first: {AGAIN}, with the queries of this run"
        )


def _line(record: Mapping) -> bytes:
    return json.dumps(record).encode() + b"\n"
