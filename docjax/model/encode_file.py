"""`docjax encode`: vectors of any number of documents, in constant memory."""

import contextlib
import functools
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from docjax.data.counted import warn_of_bad
from docjax.data.documents import parts
from docjax.data.sources.files import stamp
from docjax.data.sources.lines import check_again
from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.progress.bars import bar
from docjax.retrieval import finite
from docjax.retrieval.beir import read_documents
from docjax.storage import vector_files
from docjax.storage.shards import PASSAGES, SIZES, VECTORS, Shards
from docjax.storage.vector_files import appending, beside
from docjax.types import Document, Encoded

DOCUMENTS, CHARACTERS = 4096, 1 << 22  # a shard ends at either number
Check = Callable[[Iterable[Document], str], Iterator[Document]]


def encode_file(
    model: DocumentModel,
    path: str,
    output: Path,
    *,
    reading: Mapping[str, Any] | None = None,
    passages: bool = False,
    check: Check | None = None,
    processes: int = 1,
    process: int = 0,
) -> dict[str, Any] | None:
    """Writes the vectors of a file's documents to `Shards`; returns the counts. The
    suffix of `output` says the format (`docjax.storage.vector_files`).

    `reading` are keywords of the source `files`. `passages` writes the vectors of the segments too. `check(documents, path)` yields
    the documents, or raises for a bad one. After a kill the same call continues.
    Process k of n writes shards k, k + n, ... The last process to finish joins the
    shards and returns the counts; every other process returns None.

    Raises:
      UserError: for a bad document, before any document is encoded; if the input or the
        model has changed since the first call; for a damaged shard; and if the output
        cannot be written.
    """
    _check_process(process, processes)
    vector_files.check(output)
    check_again(path)
    before = stamp(path)
    model.cut.frame  # noqa: B018, raises for a prompt that leaves no room
    fingerprint = functools.partial(_fingerprint, path, reading or {}, passages)
    files = Shards(output, model.fingerprint(), fingerprint, passages)
    with _written(output):
        with files.locked():
            counts = files.complete()
            if counts is not None:
                return counts
            plan = files.plan(lambda: survey(path, reading or {}, check))
        # The survey has told of bad documents.
        documents = read_documents(path, report=Counter(), **(reading or {}))
        encode = functools.partial(_encoded, model, passages)
        _encode_shards(encode, documents, files, plan["documents"], processes, process)
        _check_same(path, before, files.folder)
        with files.locked():
            return files.complete() or files.join(plan)


def _check_same(path: str, before: list[tuple], folder: Path) -> None:
    """Raises UserError if the input has changed since `before`."""
    if stamp(path) != before:
        raise UserError(
            f"{path} changed while it was encoded: wait until it is written, delete "
            f"{folder} and run the same command again"
        )


def _check_process(process: int, processes: int) -> None:
    """Raises UserError for the number of no process."""
    if processes < 1:
        raise UserError(f"processes {processes} is too small; give at least 1")
    if not 0 <= process < processes:
        most = processes - 1
        raise UserError(f"process {process} is not a number from 0 to {most}")


def _fingerprint(
    path: str, reading: Mapping[str, Any], passages: bool, content: bool
) -> str:
    """A sha256 of the input: of the file's content, or of its size and time."""
    others = dict(reading)
    most = others.pop("max_bad_fraction", 0.0)
    facts = [stamp(path, content), most, passages, DOCUMENTS, CHARACTERS]
    facts += [others] if others else []
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def survey(
    path: str, reading: Mapping[str, Any], check: Check | None = None
) -> dict[str, Any]:
    """The number of `documents` in each shard, and of documents `left_out` by reason.
    It finds every mistake in the input before hours of encoding."""
    report: Counter = Counter()
    documents = read_documents(path, report=report, **reading)
    documents = check(documents, path) if check else documents
    sizes = []
    with bar("check", unit="document") as checked:
        for shard in parts(checked.each(documents), DOCUMENTS, CHARACTERS):
            sizes.append(len(shard))
    warn_of_bad(report, path)
    del report["documents"]
    return {"documents": sizes, "left_out": report}


def _encoded(
    model: DocumentModel, passages: bool, shard: list[Document], counts: dict[str, int]
) -> dict[str, np.ndarray]:
    """The arrays of a shard; `counts` receives what was read."""
    if not passages:
        return {VECTORS: np.stack(list(model.encode_stream(shard, stats=counts)))}
    pairs = model.encode_with_passages(shard, counts)
    vectors, parts = zip(*pairs, strict=True)
    sizes = np.array([len(part) for part in parts], np.int32)
    return {VECTORS: np.stack(vectors), PASSAGES: np.concatenate(parts), SIZES: sizes}


def _encode_shards(
    encode: Callable[[list[Document], dict[str, int]], dict[str, np.ndarray]],
    documents: Iterator[Document],
    files: Shards,
    sizes: list[int],
    processes: int,
    process: int,
) -> None:
    """Writes the missing shards of this process."""
    total = sum(sizes[process::processes])
    with bar("encode", total, "document") as shown, contextlib.closing(documents):
        for number, shard in enumerate(parts(documents, DOCUMENTS, CHARACTERS)):
            if [len(shard)] != sizes[number : number + 1]:
                break
            if number % processes == process:
                if files.read(number) is None:
                    counts: dict[str, int] = {}
                    arrays = encode(shard, counts)
                    ids = [document.id for document in shard]
                    finite.check(arrays[VECTORS], ids, "document")
                    if PASSAGES in arrays:
                        of_passages = np.repeat(ids, arrays[SIZES]).tolist()
                        finite.check(arrays[PASSAGES], of_passages, "document")
                    files.write(number, arrays, ids, counts)
                shown.add(len(shard))


def write_array(encoded: Iterable[Encoded], output: Path) -> None:
    """Writes OUT and its ids. Raises UserError if OUT is there already."""
    if output.exists():
        raise UserError(
            f"{output} is there already: name another --output, or delete it"
        )
    encoded = iter(encoded)
    first = next(encoded)
    with _written(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        with appending(output, len(first.vector)) as append:
            for each in itertools.chain([first], encoded):
                append(each.vector[None], [each.id])
            beside(output, "json").unlink(missing_ok=True)  # of an earlier array


@contextlib.contextmanager
def _written(output: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{output}: cannot be written ({error}); mend the cause, and run the same "
            "command again"
        ) from None
