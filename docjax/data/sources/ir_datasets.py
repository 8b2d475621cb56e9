"""Documents of ir-datasets by name, such as "beir/nfcorpus" or "msmarco-document".

    pip install 'docjax[ir-datasets]'

The library downloads what may be downloaded; for the rest, such as Robust04, it says
where to put the files.
"""

import importlib.metadata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from docjax.data import counted, documents
from docjax.errors import UserError, library
from docjax.types import Document

BODIES = ("body", "text")  # the field of the text beside a title


def ir_datasets(
    name: str, max_bad_fraction: float = 0.0, report: Counter | None = None
) -> Iterator[Document]:
    """The documents of the dataset `name`.

    Raises:
      UserError: if the library is missing, does not know the name or cannot read the
        files, and what `counted.read` raises.
    """
    numbered = (
        (f"{name}, document {number}", each)
        for number, each in enumerate(rows_of(load(name).docs_iter, name), start=1)
    )
    return counted.read(numbered, _parsed, max_bad_fraction, report)


def stamp(name: str, content: bool = False, **keywords) -> list[tuple]:
    """The number of documents and the version of the library."""
    version = importlib.metadata.version("ir-datasets")
    [count] = rows_of(lambda: [load(name).docs_count()], name)
    return [(name, count, version)]


def load(name: str) -> Any:
    """The dataset of the library. Raises UserError if the library is missing or does
    not know the name."""
    try:
        return _library().load(name)
    except KeyError:
        raise UserError(f"ir-datasets has no dataset {name!r}") from None


def rows_of(read: Callable[[], Iterable[Any]], name: str) -> Iterator[Any]:
    """What a method of the library's dataset `name` gives. Raises UserError with the
    library's words, if a file is missing or cannot be downloaded."""
    try:
        yield from read()
    except (OSError, RuntimeError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"ir-datasets cannot read {name}: {said}") from error


def names() -> list[str]:
    """All names that the library knows."""
    return list(_library().registry)


def _library() -> ModuleType:
    return library("ir_datasets", "a name of ir-datasets", "ir-datasets")


def _parsed(found: Any, place: str) -> Document:
    fields = found._asdict()
    body = next((fields[field] for field in BODIES if field in fields), None)
    parts = {"title": fields.get("title") or "", "text": body}
    if body is None:
        parts = {"text": found.default_text()}
    return documents.parse({"id": found.doc_id} | parts, place)
