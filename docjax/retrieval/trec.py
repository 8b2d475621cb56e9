"""Runs as TREC's tools read them: query, Q0, document, rank, score, system."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from docjax.data.documents import decode
from docjax.data.sources.lines import open_lines
from docjax.errors import UserError
from docjax.storage import atomic
from docjax.types import Document, Run

FORM = "query, Q0, document, rank, score, system"


def lines(run: Run, system: str) -> Iterator[str]:
    """The lines of a run, each query's documents best first. Raises UserError for an id
    with white space."""
    for query, documents in run.items():
        _check_id(query)
        for rank, (document, score) in enumerate(documents.items(), start=1):
            _check_id(document)
            yield f"{query} Q0 {document} {rank} {score:.9g} {system}\n"


def checked(documents: Iterable[Document], path: str) -> Iterator[Document]:
    """Yields the documents or queries of files. Raises UserError for an id with white
    space, which the format has no room for."""
    for document in documents:
        _check_id(document.id, f"{path}: ")
        yield document


def _check_id(name: str, place: str = "") -> None:
    if len(name.split()) != 1:
        raise UserError(
            f"{place}id {name!r}: a TREC run has no room for white space; rename it"
        )


def write(run: Run, file: Path, system: str) -> None:
    """Writes a run; if that fails, the old file stays. Raises UserError if the file
    cannot be written."""
    text = "".join(lines(run, system))
    try:
        atomic.write_text(file, text)
    except OSError as error:
        raise UserError(f"{file}: cannot be written ({error})") from None


def read(file: Path) -> Run:
    """The run in a file, plain, .gz, .xz or .zst: a query's documents, best first.

    Raises:
      UserError: for a file that cannot be read or is empty, a line of another form, a
        score that is not finite, or a document that a query has twice.
    """
    run: Run = {}
    for number, raw in enumerate(open_lines(file), start=1):
        place = f"{file}, line {number}"
        line = decode(raw, place)
        if not line.strip():
            continue
        query, document, score = _fields(line, place)
        scores = run.setdefault(query, {})
        if document in scores:
            raise UserError(
                f"{place}: query {query!r} has the document {document!r} twice: remove "
                "one line"
            )
        scores[document] = score
    if not run:
        raise UserError(f"{file}: empty; a run has lines of {FORM}")
    best_first = lambda scores: sorted(scores.items(), key=lambda pair: -pair[1])
    return {query: dict(best_first(scores)) for query, scores in run.items()}


def _fields(line: str, where: str) -> tuple[str, str, float]:
    try:
        query, _, document, _, text, _ = line.split()
        score = float(text)
    except ValueError:
        shown = line.rstrip("\r\n")
        raise UserError(f"{where}: {shown!r} is not {FORM}: mend the line") from None
    if not math.isfinite(score):
        raise UserError(
            f"{where}: the score {text} is not a finite number: mend what made the run, "
            "or remove the line"
        )
    return query, document, score
