"""Documents that Python gave to a run, kept in the run directory under a seal.

documents.jsonl    the documents, one a line
manifest.json      its sha256
"""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from docjax.data.sources import jsonl
from docjax.errors import UserError
from docjax.storage import atomic, manifest
from docjax.types import Document

FILE = "documents.jsonl"


def kept(
    path: str, max_bad_fraction: float = 0.0, report: Counter | None = None
) -> Iterator[Document]:
    """The documents in the folder `path`. Raises UserError for a file that has changed,
    and what `jsonl` raises."""
    folder = Path(path)
    try:
        found = manifest.compare(folder)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    if found.differing or found.missing:
        raise UserError(
            f"{folder / FILE} has changed since docjax.train wrote it: call docjax.train "
            "with the documents and another workdir"
        )
    yield from jsonl.jsonl(str(folder / FILE), max_bad_fraction, report)


def stamp(path: str, content: bool = False, **keywords: Any) -> list[tuple]:
    return jsonl.stamp(str(Path(path) / FILE), content)


def lines(documents: Iterable[Document]) -> str:
    """The documents as JSON lines; a value of `metadata` that JSON has not becomes
    text."""
    return "".join(_line(document) for document in documents)


def holds(folder: Path, text: str) -> bool:
    """Whether a folder has this text of `lines`."""
    file = folder / FILE
    return file.is_file() and file.read_text("utf-8") == text


def write(folder: Path, text: str) -> None:
    """Writes the text of `lines` into a folder, and seals it."""
    folder.mkdir(parents=True, exist_ok=True)
    atomic.write_text(folder / FILE, text)
    manifest.seal(folder)


def _line(document: Document) -> str:
    record = dataclasses.asdict(document)
    full = {name: value for name, value in record.items() if value}
    full["sections"] = record["sections"]
    return json.dumps(full, ensure_ascii=False, default=str) + "\n"
