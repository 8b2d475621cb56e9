"""The vectors of a segment encoder that is not trained, computed once for a corpus.

They lie in the corpus's folder under a name made of the encoder, its parameters and the
limit on units, so that only they are ever read back.
"""

import dataclasses
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from absl import logging
from tqdm import tqdm

from docjax.data.corpus import Corpus
from docjax.data.segment_batches import first_units
from docjax.data.segments import OneEach, segments
from docjax.encoders.shapes import segment_is_frozen
from docjax.errors import UserError
from docjax.model.inference import WINDOW, Inference, local_mesh, windows
from docjax.run.parameters import initial_params, trained_params
from docjax.run.prepare import Prepared
from docjax.storage import atomic
from docjax.storage.arrays import digest, growing_array
from docjax.storage.checkpoint import newest_good
from docjax.storage.processes import wait
from docjax.types import DOCUMENT, QUERY, Frame, Units


class _Reader(NamedTuple):
    """What makes the vectors of one corpus."""

    inference: Inference
    params: Any
    frame: Frame
    kind: str
    most: int | None  # units of a document that are ever read


def with_vectors(prepared: Prepared) -> Prepared:
    """A run whose corpora hold the units' vectors, if they never change.

    That is: none of the segment encoder's parameters is trained, and every unit is one
    segment. Every process computes its part of the documents, on its own devices.
    """
    if not prepared.cutter.one_each or not segment_is_frozen(prepared.encoder):
        return prepared
    begun = newest_good(prepared.run / "checkpoints") is not None
    params = (
        trained_params(prepared.run, prepared.encoder)
        if begun
        else initial_params(prepared.config, prepared.encoder)
    )
    limits = prepared.config.limits
    caps = [limits.training_units, limits.inference_segments]
    encoder, graph = prepared.encoder, prepared.graph
    inference = Inference(encoder, graph, local_mesh(), limits.segment_tokens)
    frames = {
        DOCUMENT: prepared.tokenizer.frame(limits.segment_tokens),
        QUERY: prepared.tokenizer.frame(limits.query_segment),
    }
    most = {DOCUMENT: None if None in caps else max(caps), QUERY: 1}
    corpora = {DOCUMENT: prepared.corpus, QUERY: prepared.queries}
    corpus, queries = (
        corpora[kind]
        and _read_corpus(
            corpora[kind], _Reader(inference, params, frames[kind], kind, most[kind])
        )
        for kind in (DOCUMENT, QUERY)
    )
    return dataclasses.replace(prepared, corpus=corpus, queries=queries)


def _read_corpus(corpus: Corpus, reader: _Reader) -> Corpus:
    """The corpus with its units' vectors, which are written first if need be."""
    path = corpus.folder / f"vectors-{_name(reader)}.npy"
    if not path.exists():
        _write(path, corpus, reader)
    return corpus.with_vectors(np.load(path, mmap_mode="r", allow_pickle=False))


def _name(reader: _Reader) -> str:
    """A hash of the segment encoder, its parameters and the units it reads."""
    encoder = reader.inference.encoder
    facts = f"{encoder.segment!r} {reader.most} {reader.frame.limit} {reader.kind}"
    return digest(facts, reader.params["segment"])[:16]


def _write(path: Path, corpus: Corpus, reader: _Reader) -> None:
    """Every window into a file of its own, then all into one.

    A run that was stopped goes on with the windows that are missing, if it has the
    same number of processes.
    """
    processes, process = jax.process_count(), jax.process_index()
    mine = np.array_split(np.arange(len(corpus)), processes)[process]
    counts = corpus.counts[mine]
    total = int(np.minimum(counts, reader.most or counts).sum())
    logging.info("the segment encoder, which is not trained, reads %d segments", total)
    folder = path.with_suffix(f".{processes}-{WINDOW}")
    folder.mkdir(exist_ok=True)
    with tqdm(total=total, desc="segment vectors", unit="segment", disable=None) as bar:
        for number, window in enumerate(windows(corpus[int(i)] for i in mine)):
            part = folder / f"{process:06}-{number:09}.npy"
            if not part.exists():
                vectors = _vectors(reader, window)
                with atomic.partial(part) as partial, partial.open("wb") as stream:
                    np.save(stream, vectors)
            bar.update(sum(min(len(one), reader.most or len(one)) for one in window))
    wait("segment vectors")
    if process == 0:
        _join(folder, path, len(corpus.lengths))
    wait("segment vectors joined")


def _vectors(reader: _Reader, window: list[Units]) -> np.ndarray:
    """Vectors of a window's units; NaN for those beyond the limits, never used."""
    kept = [first_units(units, reader.most) for units in window]
    cut = [segments(units, OneEach(), reader.frame) for units in kept]
    vectors = np.concatenate(reader.inference.segments(reader.params, cut, reader.kind))
    out = np.full((sum(map(len, window)), vectors.shape[1]), np.nan, np.float32)
    read = [np.arange(len(a)) < len(b) for a, b in zip(window, kept, strict=True)]
    out[np.concatenate(read)] = vectors
    return out


def _join(folder: Path, path: Path, segments: int) -> None:
    """All windows as one array of `segments` rows."""
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
                f"{folder} holds vectors of {rows} segments, the corpus has {segments}: "
                "delete that folder, and run the same command again"
            )
    # Also what a run of another number of processes left.
    for rest in path.parent.glob(f"{path.stem}.*-*"):
        shutil.rmtree(rest)
