"""Hard negatives: documents that a ranking puts high and nobody judged relevant.

A file of negatives has a JSON object per line; the last line is its seal:

    {"query": ID, "negatives": [document ids, best first]}
    {"seal": sha256 of the lines before, "documents": COUNT, "made_by": NAME,
     "queries": COUNT}

`documents` is the number of documents that were ranked.
"""

import hashlib
import json
from collections.abc import Callable, Container, Mapping
from pathlib import Path

from docjax.errors import UserError
from docjax.storage import atomic
from docjax.types import Qrels, Run

Negatives = Mapping[str, list[str]]  # query id -> document ids, best first
AGAIN = "write it again with docjax mine"


def mine(
    rank: Callable[[int], Run], qrels: Qrels, top: int, margin: float | None = None
) -> dict[str, list[str]]:
    """The `top` best documents of each query of `qrels` that are not relevant to it.

    Args:
      rank: gives a run with that many documents per query. `mine` asks for more than
        `top`, so that enough documents remain without the relevant documents.
      qrels: a document with a gain above 0 is relevant.
      margin: leaves out documents that score above (1 - margin) of the query's best
        relevant document: likely answers that nobody judged (NV-Retriever, Moreira et
        al., 2024). None: leaves out none.
    """
    relevant = {
        query: {name for name, gain in gains.items() if gain > 0}
        for query, gains in qrels.items()
    }
    run = rank(top + max(map(len, relevant.values()), default=0))
    return {
        query: _below(run.get(query, {}), known, margin)[:top]
        for query, known in relevant.items()
    }


def _below(
    scores: Mapping[str, float], relevant: Container[str], margin: float | None
) -> list[str]:
    """The documents that are not relevant, in order, below the margin."""
    names = [name for name in scores if name not in relevant]
    best = max((s for name, s in scores.items() if name in relevant), default=None)
    if margin is None or best is None:
        return names
    limit = best - margin * abs(best)
    return [name for name in names if scores[name] <= limit]


def write(negatives: Negatives, file: Path, *, documents: int, made_by: str) -> None:
    """Writes a sealed file; if that fails, the old file stays.

    Raises:
      UserError: if the file cannot be written.
    """
    lines = [
        _line({"query": query, "negatives": names})
        for query, names in negatives.items()
    ]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    facts = {"documents": documents, "made_by": made_by, "queries": len(negatives)}
    try:
        atomic.write_bytes(file, b"".join([*lines, _line({"seal": digest, **facts})]))
    except OSError as error:
        raise UserError(f"{file}: cannot be written ({error})") from None


def read(file: Path, known: Container[str] | None = None) -> dict[str, list[str]]:
    """The negatives of each query, from a file whose seal is intact.

    Args:
      known: the ids of the corpus; None: every id is allowed.

    Raises:
      UserError: for a file that is missing, cut short or changed, or that names a
        document which is not `known`.
    """
    try:
        lines = file.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror})") from None
    _check_seal(file, lines)
    records = map(json.loads, lines[:-1])
    negatives = {record["query"]: record["negatives"] for record in records}
    if known is not None:
        _check_known(file, negatives, known)
    return negatives


def made_by(file: Path) -> str | None:
    """The `made_by` of a file's seal; None if the file is not intact."""
    try:
        lines = file.read_bytes().splitlines(keepends=True)
        _check_seal(file, lines)
    except (OSError, UserError):
        return None
    return json.loads(lines[-1]).get("made_by")


def _check_seal(file: Path, lines: list[bytes]) -> None:
    try:
        seal = json.loads(lines[-1])["seal"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise UserError(
            f"{file}: the last line is no seal, so the file is cut short or not a file "
            f"of negatives: {AGAIN}"
        ) from None
    if seal != hashlib.sha256(b"".join(lines[:-1])).hexdigest():
        raise UserError(f"{file}: was changed after it was written: {AGAIN}")


def _check_known(file: Path, negatives: Negatives, known: Container[str]) -> None:
    names = {name for ranked in negatives.values() for name in ranked}
    unknown = sorted(name for name in names if name not in known)
    if unknown:
        raise UserError(
            f"{file}: {len(unknown)} of {len(names)} documents are not in the corpus, "
            f"{unknown[0]!r} is the first: {AGAIN}, with the documents of this corpus"
        )


def _line(record: Mapping) -> bytes:
    return json.dumps(record).encode() + b"\n"
