"""`docjax index`: the files of `docjax.retrieval.index_files` for a corpus of any size."""

import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from docjax.data.documents import to_line
from docjax.data.sources.files import stamp
from docjax.data.sources.lines import check_again
from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.model.encode_file import encode_file
from docjax.progress.bars import bar
from docjax.retrieval import bm25, bm25_files, codes, hnsw, shortlist, trec
from docjax.retrieval import index_files as index
from docjax.retrieval.beir import read_documents
from docjax.storage import atomic, json_file, line_starts, lock
from docjax.storage.arrays import growing_array
from docjax.storage.vector_files import beside

AT_ONCE = 1 << 14  # vectors that are read at once


def build_index(
    model: DocumentModel,
    path: str,
    output: Path,
    *,
    passages: bool = False,
    words: str | None = "docjax",
    kind: str | None = None,
    graph: bool = False,
    reading: Mapping[str, Any] | None = None,
    **shared: Any,
) -> dict[str, Any] | None:
    """Writes the index of documents into the folder `output`; returns the counts.

    After a kill the same call continues. Of several processes, the last one to finish
    its shards writes the rest and returns the counts; the others return None.

    Args:
      passages: also keeps the vectors of the documents' segments.
      reading: keywords of the source `files`.
      words, kind: as `bm25.preset` takes, and a name of `codes.KINDS`; None: without.
      graph: also makes a graph of neighbours (`docjax.retrieval.hnsw`).
      shared: `processes` and `process` of `encode_file`, and its `check`, by default
        that ids fit into a TREC run.

    Raises:
      UserError: as `encode_file`; if a library is missing; and for settings that do not
        exist, do not fit the model or differ from those of a finished index.
    """
    _check_settings(model, words, kind, graph)
    facts = {
        "passages": passages,
        "words": words,
        "codes": kind,
        "graph": graph,
        "truncate_dim": model.truncate_dim,
        "similarity": model.similarity_fn_name,
        "model": model.fingerprint(),
    }
    _check_made(output, facts)
    corpus = _Corpus(path, reading or {})
    vectors = output / index.VECTORS
    shared = {"check": trec.checked, "passages": passages, "reading": reading} | shared
    counts = encode_file(model, path, vectors, **shared)
    if counts is not None:
        facts |= {"contents": json_file.read(beside(vectors, "json"))["contents"]}
        with lock.awaited(output / ".lock"):
            if not _is_whole(output, facts):
                _finish(output, corpus, counts["documents"], facts)
    return counts


class _Corpus:
    """The documents of files, which can be read again."""

    def __init__(self, path: str, reading: Mapping[str, Any]):
        check_again(path)
        self._path, self._before = path, stamp(path)
        told = Counter()  # `encode_file` has told of bad documents
        self.documents = functools.partial(read_documents, path, report=told, **reading)

    def check(self, expected: int, *counts: int) -> None:
        """Raises UserError if the files have changed, or a reading found more or less."""
        wrong = [count for count in counts if count != expected]
        if wrong or stamp(self._path) != self._before:
            found = f": {wrong[0]} documents in place of {expected}" if wrong else ""
            raise UserError(
                f"{self._path} changed while the index was made{found}; run the same "
                "command again"
            )


def _check_settings(
    model: DocumentModel, words: str | None, kind: str | None, graph: bool
) -> None:
    if words is not None:
        bm25.libraries()
        bm25.preset(words)
    asked = f"--codes {kind}" if kind else "--graph"
    if (kind or graph) and model.parts > 1:
        raise UserError(
            f"{asked}: this model gives a document several vectors, which are "
            "searched as they are; leave it out"
        )
    if kind and graph:
        raise UserError(f"{asked} and --graph exclude each other: pass one")
    if graph:
        hnsw.usearch()
    if kind == "binary" and model.width % 8:
        raise UserError(
            f"--codes binary: the vectors have {model.width} numbers, which 8 does not "
            "divide: take int8"
        )


def _finish(output: Path, corpus: _Corpus, count: int, facts: dict[str, Any]) -> None:
    """Writes what an index of `count` vectors has beside them; the facts last."""
    (output / index.FACTS).unlink(missing_ok=True)  # of files that are made again
    line_starts.write_starts(beside(output / index.VECTORS, "ids.jsonl"))
    with bar("texts", count, "document") as read:
        documents = read.each(corpus.documents())
        line_starts.write(map(to_line, documents), output / index.DOCUMENTS)
    counts = [len(line_starts.Lines(output / index.DOCUMENTS))]
    if facts["words"] is not None:
        folder = output / index.WORDS
        folder.mkdir(exist_ok=True)
        settings = bm25.preset(facts["words"])
        with bar("words", count, "document") as read:
            documents = read.each(corpus.documents())
            counts.append(bm25_files.write(documents, settings, folder))
    corpus.check(count, *counts)
    if facts["codes"]:
        _write_codes(output, facts["codes"])
    cosine = facts["similarity"] == "cosine"
    if facts["graph"]:
        width, path = _mapped(output).shape[1], output / index.GRAPH
        hnsw.write(_vectors(output), width, path, cosine=cosine)
    measured = [shortlist.measured(part, cosine=cosine) for part in _vectors(output)]
    rounding = np.max(measured, axis=0).tolist()
    found = {"bfloat16": rounding, "files": index.file_sizes(output, facts)}
    json_file.write(output / index.FACTS, facts | found)


def _is_whole(output: Path, asked: dict[str, Any]) -> bool:
    """Whether the index is finished and of this corpus. Raises as `_check_made`."""
    facts = _check_made(output, {k: v for k, v in asked.items() if k != "contents"})
    if facts is None or facts.get("contents") != asked["contents"]:
        return False
    return not index.damaged(output, facts)


def _check_made(output: Path, asked: dict[str, Any]) -> dict[str, Any] | None:
    """The facts of a finished index. Raises UserError if it has other settings."""
    if not (output / index.FACTS).exists():
        return None
    facts = index.read_facts(output)
    other = [name for name, value in asked.items() if facts[name] != value]
    if other and other[0] in ("similarity", "model"):
        raise UserError(
            f"{output} was made with another model or prompt: use the original again, "
            "name another --output, or delete it"
        )
    if other:
        was, now = (_flag(other[0], of[other[0]]) for of in (facts, asked))
        raise UserError(
            f"{output} was made with {was}, not with {now}: name another --output, or "
            "delete it"
        )
    return facts


def _flag(name: str, value: Any) -> str:
    """A setting as the command takes it."""
    flag = f"--{name.replace('_', '-')}"
    if value in (None, False):
        return f"no {flag}"
    return flag if value is True else f"{flag} {value}"


def _write_codes(output: Path, kind: str) -> None:
    width = _mapped(output).shape[1] // (8 if kind == "binary" else 1)
    with (
        atomic.partial(output / index.CODES) as of_codes,
        atomic.partial(output / index.STEPS) as of_steps,
        growing_array(of_codes, codes.KINDS[kind], (width,)) as append,
        growing_array(of_steps, np.float32) as append_steps,
    ):
        for vectors in _vectors(output):
            part = codes.coded(vectors, kind)
            append(part.codes)
            append_steps(part.steps)


def _vectors(output: Path) -> Iterator[np.ndarray]:
    """Blocks of the documents' vectors.

    Each block is mapped alone: all that a process has read of one map is its memory.
    """
    for start in range(0, len(_mapped(output)), AT_ONCE):
        yield np.array(_mapped(output)[start : start + AT_ONCE])


def _mapped(output: Path) -> np.ndarray:
    return np.load(output / index.VECTORS, mmap_mode="r", allow_pickle=False)
