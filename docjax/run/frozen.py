"""The vectors of a segment encoder that is not trained, computed once for a corpus.

A file in the corpus's folder holds the vectors. Its name is a hash of the encoder, its
parameters and the limit on units, so no run reads the vectors of another encoder. The
name of a file of some documents is also a hash of their numbers. The halves of documents
that training reads as two units have files of their own.
"""

import dataclasses
import functools
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from docjax.data.corpus import Corpus
from docjax.data.halved import Halved
from docjax.data.segment_batches import first_units
from docjax.data.segments import OneEach, segments
from docjax.data.subset import Subset
from docjax.encoders.document import DocumentEncoder, param_shapes
from docjax.encoders.pooling import Mean
from docjax.encoders.word_vectors import WordVectors
from docjax.errors import UserError
from docjax.model.inference import WINDOW, Inference, local_mesh, windows
from docjax.parts import outside
from docjax.progress.bars import bar
from docjax.run import duration
from docjax.run.parameters import start_params, trained_params
from docjax.run.prepared import Prepared
from docjax.storage import atomic
from docjax.storage.arrays import digest, growing_array
from docjax.storage.checkpoint import newest_good
from docjax.storage.processes import wait
from docjax.types import DOCUMENT, QUERY, Frame, Units

logger = logging.getLogger(__name__)

Part = Corpus | Subset | Halved


class _Reader(NamedTuple):
    """The encoder and the limits that make the vectors of one corpus."""

    inference: Inference
    params: Any
    frame: Frame
    kind: str
    most: int | None  # units that training or inference reads of a document; None: all


def with_vectors(prepared: Prepared) -> Prepared:
    """The run with the units' vectors in its corpora, if training never changes them.

    Vectors never change if the segment encoder is not trained and every unit is one
    segment. Each process encodes its part of the documents, on its own devices.
    Documents that training reads as two units have the vectors of both.

    Documents that neither steps nor tasks read have none (`_read_first`); they are read
    when their vectors are asked for.
    """
    if not reads_once(prepared):
        return prepared
    readers = _readers(prepared)
    if prepared.samples:
        _log_duration(prepared, readers[DOCUMENT])
    return _filled(prepared, lambda part, kind: _read_corpus(part, readers[kind]))


def _filled(prepared: Prepared, read: Callable[[Part, str], Any]) -> Prepared:
    """The run with vectors in its documents, their halves and its queries; `read` gives
    a corpus of one kind its vectors."""
    corpus = read(_read_first(prepared), DOCUMENT)
    queries, halved = prepared.queries, prepared.halved
    if queries:
        queries = read(queries, QUERY)
    if halved:
        halved = read(dataclasses.replace(halved, corpus=corpus), DOCUMENT)
    return prepared.changed(corpus=corpus, queries=queries, halved=halved)


def reads_once(prepared: Prepared) -> bool:
    """Whether the units' vectors are computed once, before the first step.

    Raises:
      UserError: for a limit on tokens, which would cut units that are read whole.
    """
    reads = prepared.is_read_once
    if reads and (most := prepared.config.limits.training_tokens):
        raise UserError(
            f"limits.training_tokens {most} would cut a passage, but an encoder that is "
            "not trained has read all passages whole: leave it out, or set "
            "limits.training_units to a number of passages"
        )
    return reads


def _readers(prepared: Prepared) -> dict[str, _Reader]:
    """The readers of documents and of queries, with the parameters of the run."""
    has_checkpoint = newest_good(prepared.run / "checkpoints") is not None
    params = (
        trained_params(prepared.run, prepared.encoder)
        if has_checkpoint
        else start_params(prepared.config, prepared.encoder, prepared.run)
    )
    limits = prepared.config.limits
    caps = [limits.training_units, limits.inference_segments]
    encoder, graph = prepared.encoder, prepared.graph
    inference = Inference(encoder, graph, local_mesh(), limits.segment_tokens)
    most = {DOCUMENT: None if None in caps else max(caps), QUERY: 1}
    return {
        kind: _Reader(inference, params, prepared.frames[kind], kind, most[kind])
        for kind in (DOCUMENT, QUERY)
    }


def _read_first(prepared: Prepared) -> Corpus | Subset:
    """The documents that are read before the first step.

    If the steps read single documents and the tasks labelled ones: these. Else all.
    """
    corpus, tasks = prepared.corpus, prepared.tasks.values()
    of_labels = all(task.reads == "labels" for task in tasks)
    if not (prepared.samples and of_labels):
        return corpus
    scored = map(prepared.scored, ("train", "validation", "test"))
    rows = functools.reduce(np.union1d, scored, prepared.in_reach)
    return corpus if len(rows) == len(corpus) else Subset(corpus, rows)


def with_stand_ins(prepared: Prepared) -> Prepared:
    """The run with an arbitrary vector for every unit that `with_vectors` reads.

    Steps on them take as long as steps on the true vectors.
    """
    if not reads_once(prepared):
        return prepared
    width = vector_width(prepared.encoder)
    row = np.random.default_rng(0).normal(size=(1, width)).astype(np.float32)
    stand_in = lambda part, _: part.with_vectors(
        np.broadcast_to(row, (len(part.lengths), width))
    )
    return _filled(prepared, stand_in)


def vector_width(encoder: DocumentEncoder) -> int:
    """The numbers of a segment's vector; nothing is computed."""
    one, tower = jnp.ones(1, jnp.int32), encoder.tower(DOCUMENT)
    inputs = one[:, None], one, jnp.zeros((1, 2), jnp.int32), None
    segments = lambda params: encoder.apply(
        {"params": params}, *inputs, tower, method="segments"
    )
    return jax.eval_shape(segments, param_shapes(encoder)).shape[-1]


def _log_duration(prepared: Prepared, reader: _Reader) -> None:
    """Logs how long the encoder reads documents and halves, unless it has read them."""
    corpus = _read_first(prepared)
    unread = [
        part
        for part in (corpus, prepared.halved)
        if part and not all(_path(part, each).exists() for each in _parts(reader))
    ]
    if not unread:
        return
    tokens = sum(int(part.lengths.sum()) for part in unread)
    read = functools.partial(reader.inference.segments, reader.params)
    sample = duration.sampled(len(corpus), lambda row: prepared.segments(corpus[row]))
    seconds = tokens * duration.seconds_a_token(read, sample) / jax.process_count()
    logger.info(
        "the frozen encoder reads %s tokens of %s documents in about %s, before the "
        "first step",
        *(f"{tokens:,}", f"{len(corpus):,}", duration.shown(seconds)),
    )


def _path(corpus: Part, reader: _Reader) -> Path:
    """The file of a corpus's vectors, named by a hash of what makes them."""
    rows = "" if isinstance(corpus, Corpus) else f" {corpus.rows.tolist()}"
    whole = " whole" if isinstance(corpus, Subset) else ""
    return corpus.folder / f"vectors-{_name(reader, whole + rows)}.npy"


def _read_corpus(corpus: Part, reader: _Reader) -> Corpus | Halved:
    """The corpus with its units' vectors; computes them if they are missing.

    Word vectors have a file of their own: they change with the corpus that they are
    fitted to, and the transformer's vectors do not.
    """
    parts = []
    for part in _parts(reader):
        path = _path(corpus, part)
        if not path.exists():
            _write(path, corpus, part)
        parts.append(np.load(path, mmap_mode="r", allow_pickle=False))
    return corpus.with_vectors(*parts)


def _parts(reader: _Reader) -> list[_Reader]:
    """A reader of the transformer alone and a reader of its words; or one reader."""
    segment, params = reader.inference.encoder.segment, reader.params["segment"]
    if not segment.words:
        return [reader]
    alone = segment.clone(words=0)
    words = WordVectors(segment.vocabulary, segment.words)
    without = {name: part for name, part in params.items() if name != "words"}
    pairs = (alone, without), (words, params["words"])
    return [
        reader._replace(
            inference=dataclasses.replace(
                reader.inference, encoder=DocumentEncoder(module, Mean()), graph=None
            ),
            params={"segment": part},
        )
        for module, part in pairs
    ]


def _name(reader: _Reader, rows: str) -> str:
    """A hash of the segment encoder, its parameters and the units it reads.

    rows: names the documents, and whether they are halved; empty for a whole corpus.
    """
    encoder = reader.inference.encoder
    facts = f"{encoder.segment!r} {reader.most} {reader.frame.limit} {reader.kind}"
    code = outside.code_of(encoder.segment)
    return digest(facts + rows + code, reader.params["segment"])[:16]


def _write(path: Path, corpus: Part, reader: _Reader) -> None:
    """Writes the vectors of each window to a file of its own, then joins the files.

    A stopped run computes only the missing windows when it starts again with the same
    number of processes.
    """
    processes, process = jax.process_count(), jax.process_index()
    rows = np.array_split(np.arange(len(corpus)), processes)[process]
    counts = corpus.counts[rows]
    total = int(np.minimum(counts, reader.most or counts).sum())
    words = isinstance(reader.inference.encoder.segment, WordVectors)
    name = "word vectors of segments" if words else "the frozen encoder reads"
    folder = path.with_suffix(f".{processes}-{WINDOW}")
    folder.mkdir(exist_ok=True)
    with bar(name, total, "segment") as shown:
        for number, window in enumerate(windows(corpus[int(i)] for i in rows)):
            part = folder / f"{process:06}-{number:09}.npy"
            count = sum(min(len(units), reader.most or len(units)) for units in window)
            with shown.part(count) as read:
                if not part.exists():
                    atomic.write_array(part, _vectors(reader, window, read))
    wait("segment vectors")
    if process == 0:
        _join(folder, path, len(corpus.lengths))
    wait("segment vectors joined")


def _vectors(
    reader: _Reader, window: list[Units], read: Callable[[float], None]
) -> np.ndarray:
    """Vectors of a window's units; NaN for units beyond the limit, never used."""
    kept = [first_units(units, reader.most) for units in window]
    documents = [segments(units, OneEach(), reader.frame) for units in kept]
    vectors = np.concatenate(
        reader.inference.segments(reader.params, documents, reader.kind, read)
    )
    out = np.full((sum(map(len, window)), vectors.shape[1]), np.nan, np.float32)
    is_kept = [np.arange(len(a)) < len(b) for a, b in zip(window, kept, strict=True)]
    out[np.concatenate(is_kept)] = vectors
    return out


def _join(folder: Path, path: Path, segments: int) -> None:
    """Joins the windows' files into one array of `segments` rows."""
    parts = sorted(folder.glob("*.npy"))
    rows, width = 0, np.load(parts[0], mmap_mode="r", allow_pickle=False).shape[1:]
    with atomic.partial(path) as partial:
        with growing_array(partial, np.float32, width) as write:
            for part in parts:
                vectors = np.load(part, allow_pickle=False)
                write(vectors)
                rows += len(vectors)
        if rows != segments:
            raise UserError(
                f"{folder} holds vectors of {rows} segments, but the corpus has "
                f"{segments}; delete that folder and run the same command again"
            )
    # Also removes the windows of runs with another number of processes.
    for leftover in path.parent.glob(f"{path.stem}.*-*"):
        shutil.rmtree(leftover)
