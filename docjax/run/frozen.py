"""The vectors of a segment encoder that is not trained, computed once for a corpus.

They lie in `RUN/corpus/` under a name made of the encoder, its parameters and the cap
on segments, so that only they are ever read back.
"""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import logging
from tqdm import tqdm

from docjax.data import segment_batches as batches
from docjax.encoders.document import DocumentEncoder
from docjax.errors import UserError
from docjax.model.inference import WINDOW, Inference, windows
from docjax.run.prepare import Prepared, initial_params, trained_params
from docjax.storage.arrays import digest, growing_array
from docjax.storage.checkpoint import newest_good
from docjax.storage.processes import wait
from docjax.types import Segments

CAPS = ("training_segments", "inference_segments")


def with_vectors(prepared: Prepared) -> Prepared:
    """A run whose corpus holds the segments' vectors, if its encoder is frozen.

    Every process computes its part of the documents, on its own devices.
    """
    if not prepared.encoder.frozen:
        return prepared
    begun = newest_good(prepared.run / "checkpoints") is not None
    params = trained_params(prepared) if begun else initial_params(prepared)
    corpus = prepared.corpus
    caps = [prepared.config["limits"][name] for name in CAPS]
    most = None if None in caps else max(caps)
    path = corpus.folder / f"vectors-{_name(prepared.encoder, params, most)}.npy"
    if not path.exists():
        _write(path, prepared, params, most)
    corpus = corpus.with_vectors(np.load(path, mmap_mode="r", allow_pickle=False))
    return dataclasses.replace(prepared, corpus=corpus)


def _name(encoder: DocumentEncoder, params: Any, most: int | None) -> str:
    """A hash of the segment encoder, its parameters and the segments it reads."""
    return digest(f"{encoder.segment!r} {most}", params["segment"])[:16]


def _write(path: Path, prepared: Prepared, params: Any, most: int | None) -> None:
    """Every window into a file of its own, then all into one.

    A run that was stopped goes on with the windows that are missing, if it has the
    same number of processes.
    """
    corpus, processes = prepared.corpus, jax.process_count()
    mesh = jax.sharding.Mesh(jax.local_devices(), ("data",))
    limit = prepared.config["limits"]["segment_tokens"]
    inference = Inference(prepared.encoder, prepared.graph, mesh, limit)
    mine = np.array_split(np.arange(len(corpus)), processes)[jax.process_index()]
    counts = corpus.counts[mine]
    total = int(np.minimum(counts, most or counts).sum())
    logging.info("the frozen segment encoder reads %d segments once", total)
    folder = path.with_suffix(f".{processes}-{WINDOW}")
    folder.mkdir(exist_ok=True)
    with tqdm(total=total, desc="segment vectors", unit="segment", disable=None) as bar:
        for number, window in enumerate(windows(corpus[int(i)] for i in mine)):
            part = folder / f"{jax.process_index():06}-{number:09}.npy"
            if not part.exists():
                partial = part.with_suffix(".partial")
                with partial.open("wb") as stream:
                    np.save(stream, _read(inference, params, window, most))
                partial.rename(part)
            bar.update(sum(min(len(one), most or len(one)) for one in window))
    wait("segment vectors")
    if jax.process_index() == 0:
        _join(folder, path, len(corpus.lengths))
    wait("segment vectors joined")


def _read(
    inference: Inference, params: Any, window: list[Segments], most: int | None
) -> np.ndarray:
    """Vectors of a window's segments; NaN for those beyond the caps, never used."""
    kept = [batches.cap(one, most) for one in window]
    vectors = inference.segments(params, kept)
    out = np.full((sum(map(len, window)), vectors.shape[1]), np.nan, np.float32)
    read = [np.arange(len(a)) < len(b) for a, b in zip(window, kept, strict=True)]
    out[np.concatenate(read)] = vectors
    return out


def _join(folder: Path, path: Path, segments: int) -> None:
    """All windows as one array of `segments` rows."""
    parts = sorted(folder.glob("*.npy"))
    rows, width = 0, np.load(parts[0], mmap_mode="r", allow_pickle=False).shape[1:]
    partial = path.with_suffix(".partial")
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
    partial.rename(path)
    # Also what a run of another number of processes left.
    for rest in path.parent.glob(f"{path.stem}.*-*"):
        shutil.rmtree(rest)
