"""Runs as TREC's tools read them: query, Q0, document, rank, score, system."""

from collections.abc import Iterator
from pathlib import Path

from docjax.errors import UserError
from docjax.storage import atomic
from docjax.types import Run


def lines(run: Run, system: str) -> Iterator[str]:
    """The lines of a run, each query's documents best first."""
    for query, documents in run.items():
        for rank, (document, score) in enumerate(documents.items(), start=1):
            yield f"{query} Q0 {document} {rank} {score:.9g} {system}\n"


def check_id(name: str) -> None:
    """Raises UserError for an id with white space, which the format has no room for."""
    if len(name.split()) != 1:
        raise UserError(
            f"id {name!r}: a TREC run has no room for white space; rename it"
        )


def write(run: Run, file: Path, system: str) -> None:
    """Writes a run; if that fails, the old file stays.

    Raises:
      UserError: if the file cannot be written.
    """
    text = "".join(lines(run, system))
    try:
        atomic.write_text(file, text)
    except OSError as error:
        raise UserError(f"{file}: cannot be written ({error})") from None
