"""The files of an index: the vectors, passages, words and texts of a corpus.

    index.json             what it was made of, and the size of each file; written last
    vectors.npy            the documents' vectors, with ids, passages and counts as in
                           `docjax.storage.shards`
    codes.npy, steps.npy   optional: the vectors' codes (`docjax.retrieval.codes`)
    graph.usearch          optional: a graph of neighbours (`docjax.retrieval.hnsw`)
    words/                 BM25 (`docjax.retrieval.bm25_files`)
    documents.jsonl        id, title and sections of each document

`docjax.model.build_index` writes them; `docjax.retrieval.index_folder` searches them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docjax.errors import UserError
from docjax.storage import json_file

FACTS, VECTORS, CODES, STEPS = "index.json", "vectors.npy", "codes.npy", "steps.npy"
GRAPH, WORDS, DOCUMENTS = "graph.usearch", "words", "documents.jsonl"


def is_index(folder: Path) -> bool:
    """Whether a folder holds an index, perhaps unfinished, and not a corpus."""
    return (
        folder.is_dir() and any(folder.glob(f"{VECTORS}*")) | (folder / FACTS).exists()
    )


def read_facts(folder: Path) -> dict[str, Any]:
    """What an index was made of. Raises UserError if it was not finished."""
    if not (folder / FACTS).exists():
        raise UserError(
            f"{folder} has no {FACTS}: it is no index, or docjax index was stopped; run "
            "the same command again"
        )
    facts = json_file.read(folder / FACTS)
    if not facts.keys() >= {"graph", "bfloat16"}:
        raise UserError(
            f"{folder} was made by an older docjax: delete {folder / FACTS}, and run "
            "docjax index again (documents with a vector are not encoded again)"
        )
    return facts


def damaged(folder: Path, facts: Mapping[str, Any]) -> list[str]:
    """The recorded files that are missing or have another size."""
    lacks = lambda file, size: not file.is_file() or file.stat().st_size != size
    return [name for name, size in facts["files"].items() if lacks(folder / name, size)]


def file_sizes(folder: Path, facts: Mapping[str, Any]) -> dict[str, int]:
    """The size of each file of an index, by its path in the folder.

    Other files in the folder, such as a lock, are left out.
    """
    names = [f"{VECTORS}*", f"{DOCUMENTS}*", f"{WORDS}/*"]
    if facts["codes"]:
        names += [CODES, STEPS]
    if facts["graph"]:
        names.append(GRAPH)
    files = (file for name in names for file in sorted(folder.glob(name)))
    return {
        file.relative_to(folder).as_posix(): file.stat().st_size
        for file in files
        if file.is_file() and file.suffix != ".partial"
    }
