"""Search from Python: an index of documents in memory, and what it finds for texts.

`docjax search` prints the same.
"""

import dataclasses
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

from docjax.data.documents import to_line
from docjax.data.records import full_text
from docjax.errors import UserError
from docjax.model import search
from docjax.model.build_index import build_index
from docjax.model.document_model import DocumentModel
from docjax.model.hits import Hit, Hits
from docjax.model.inputs import (
    as_corpus,
    as_document,
    as_list,
    check_path,
    check_whole,
    shown,
)
from docjax.retrieval import index_files, index_folder
from docjax.retrieval.index_folder import Index

SYSTEM = "dense"


def index(
    model: DocumentModel,
    documents: Any,
    passages: bool = True,
    words: str | None = "docjax",
) -> Index:
    """An index of a table or a list of documents, in a temporary folder.

    The folder is deleted with the index. `passages` and `words` are as in `build_index`.

    Raises:
      UserError: as `as_corpus`, and if a document's vector is not finite.
    """
    read = as_corpus(documents)
    folder = Path(tempfile.mkdtemp(prefix="docjax-index-"))
    try:
        corpus = folder / "corpus.jsonl"
        corpus.write_text("".join(map(to_line, read)), encoding="utf-8")
        any_id = lambda documents, path: iter(documents)
        made: Any = {"passages": passages, "words": words, "check": any_id}
        build_index(model, str(corpus), folder / "index", **made)
        found = index_folder.load(folder / "index", model.fingerprint())
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
    return found


def ask(model: DocumentModel, queries: Any, documents: Any, top: int = 10) -> Any:
    """The `top` documents nearest to each query, as `DocumentModel.search` gives them."""
    check_whole("top", top, optional=False)
    items, alone = as_list(queries, "queries")
    texts = {
        str(number): full_text(as_document(item, number, "query"))
        for number, item in enumerate(items)
    }
    if not isinstance(documents, Index | str | Path):
        documents = index(model, documents, words=None)
    elif not isinstance(documents, Index):
        _check_folder(documents)
        kept = index_files.read_facts(Path(documents))["truncate_dim"]
        model = dataclasses.replace(model, truncate_dim=kept)
    opened = documents if isinstance(documents, Index) else Path(documents)
    folder = opened.folder if isinstance(opened, Index) else opened
    found = index_folder.load(folder, model.fingerprint())
    vectors = search.query_vectors(model, texts, SYSTEM)
    ranking = search.search_index(model, found, texts, SYSTEM, top, vectors=vectors)
    asked = search.hits(model, found, texts, vectors, ranking, top)
    results = [Hits(map(_hit, each["hits"]), each["text"]) for each in asked]
    return results[0] if alone else results


def _check_folder(name: str | Path) -> None:
    """Raises UserError for the name of no folder."""
    check_path("the folder of an index", name)
    if not Path(name).is_dir():
        what = "a file" if Path(name).exists() else "no folder"
        raise UserError(
            f"{shown(str(name))} is {what}: give the folder of an index, or documents in "
            "a list or a table"
        )


def _hit(facts: dict[str, Any]) -> Hit:
    names = [field.name for field in dataclasses.fields(Hit)]
    return Hit(**{name: facts[name] for name in names})
